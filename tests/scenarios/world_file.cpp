#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include <postrider/publisher/file.hpp>

#include "scenarios/world.hpp"

namespace postrider::scenarios {
namespace {

class FileDestination final : public testing::PublisherHarness {
 public:
  FileDestination() {
    auto pattern = (std::filesystem::temp_directory_path() / "postrider-scenario-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
  }
  ~FileDestination() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Publisher> open_publisher() override {
    FileOptions options;
    options.path = path().string();
    return make_file_publisher(options);
  }
  std::vector<testing::Received> received() override {
    std::vector<testing::Received> received;
    std::ifstream lines(path());
    for (std::string line; std::getline(lines, line);) {
      testing::Received one;
      one.event_id = nlohmann::json::parse(line).at("id").get<std::string>();
      received.push_back(std::move(one));
    }
    return received;
  }
  bool take_down() override { return false; }
  bool bring_up() override { return false; }

 private:
  [[nodiscard]] std::filesystem::path path() const { return folder_ / "events.jsonl"; }
  std::filesystem::path folder_;
};

}  // namespace

std::unique_ptr<testing::PublisherHarness> file_destination() {
  return std::make_unique<FileDestination>();
}

}  // namespace postrider::scenarios
