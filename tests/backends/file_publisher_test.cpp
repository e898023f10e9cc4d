// The file destination against the suite that defines a publisher.

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include <postrider/publisher/file.hpp>
#include <postrider/testing/publisher_conformance.hpp>

namespace postrider::testing {
namespace {

std::string decoded_base64(const std::string& text) {
  static const std::string alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6U | static_cast<std::uint32_t>(alphabet.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xFFU));
  }
  return bytes;
}

Received parsed(const std::string& line) {
  const auto json = nlohmann::json::parse(line);
  Received received;
  received.event_id = json.at("id");
  received.type = json.at("type");
  received.content_type = json.at("content_type");
  received.payload = json.contains("payload") ? json["payload"].get<std::string>()
                                              : decoded_base64(json.at("payload_base64"));
  for (const auto& [name, value] : json.at("headers").items())
    received.headers[name] = value;
  return received;
}

class FileHarness final : public PublisherHarness {
 public:
  FileHarness() {
    auto pattern = (std::filesystem::temp_directory_path() / "postrider-file-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(folder());
  }
  ~FileHarness() override { std::filesystem::remove_all(root_); }

  std::unique_ptr<Publisher> open_publisher() override {
    return make_file_publisher(FileOptions{(folder() / "events.jsonl").string(), 1000});
  }
  std::vector<Received> received() override {
    std::ifstream file(folder() / "events.jsonl");
    std::vector<Received> all;
    for (std::string line; std::getline(file, line);)
      all.push_back(parsed(line));
    return all;
  }
  // A disk that is not mounted.
  bool take_down() override {
    std::filesystem::rename(folder(), root_ / "gone");
    return true;
  }
  bool bring_up() override {
    std::filesystem::rename(root_ / "gone", folder());
    return true;
  }

 private:
  std::filesystem::path folder() const { return root_ / "out"; }
  std::filesystem::path root_;
};

INSTANTIATE_TEST_SUITE_P(File, PublisherConformance,
                         ::testing::Values(PublisherCase{
                             "regular_file", [] { return std::make_unique<FileHarness>(); }}),
                         case_name);

}  // namespace
}  // namespace postrider::testing
