#pragma once
/// \file
/// A destination for the conformance suite: a folder in which every message becomes a file.

#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <postrider/publisher.hpp>
#include <postrider/testing/publisher_conformance.hpp>

namespace spool {

/// Fields one after the other, each behind its length.
class Record {
 public:
  Record() = default;
  explicit Record(std::string bytes) : bytes_(std::move(bytes)) {}

  void put(const std::string& field) { bytes_ += std::to_string(field.size()) + ":" + field; }
  [[nodiscard]] bool ended() const { return at_ == bytes_.size(); }
  [[nodiscard]] std::string take() {
    const auto colon = bytes_.find(':', at_);
    const auto size = std::stoul(bytes_.substr(at_, colon - at_));
    at_ = colon + 1 + size;
    return bytes_.substr(colon + 1, size);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

/// The number stands first, with leading zeros, so that the order of names is that of arrival.
inline std::filesystem::path numbered_file(const std::filesystem::path& folder, std::size_t count) {
  auto number = std::to_string(count);
  number.insert(0, 9 - number.size(), '0');
  return folder / number;
}

class SpoolPublisher final : public postrider::Publisher {
 public:
  static constexpr std::size_t window = 100;

  explicit SpoolPublisher(std::filesystem::path folder) : folder_(std::move(folder)) {}

  [[nodiscard]] postrider::PublisherTraits traits() const override {
    postrider::PublisherTraits traits;
    traits.name = "spool";
    traits.window = window;
    traits.durable = false;  // No fsync.
    return traits;
  }

  postrider::Result<void> submit(std::span<const postrider::Message> messages,
                                 postrider::Deadline /*deadline*/) override {
    std::vector<postrider::MessageOutcome> outcomes;
    for (const auto& message : messages)
      outcomes.push_back({message.attempt, write(*message.event)});
    const std::lock_guard lock(mutex_);
    outcomes_.insert(outcomes_.end(), outcomes.begin(), outcomes.end());
    changed_.notify_all();
    return {};
  }

  std::vector<postrider::MessageOutcome> poll(postrider::Deadline deadline) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, deadline.remaining(), [&] { return woken_ || !outcomes_.empty(); });
    woken_ = false;
    return std::exchange(outcomes_, {});
  }

  void wake() noexcept override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

  /// Every message has its outcome already when `submit` returns.
  std::vector<postrider::MessageOutcome> close(postrider::Deadline /*deadline*/) override {
    const std::lock_guard lock(mutex_);
    return std::exchange(outcomes_, {});
  }

 private:
  postrider::Outcome write(const postrider::Event& event) {
    using postrider::Outcome;
    if (event.payload.size() > traits().most_payload_bytes) {
      return Outcome::rejected("payload_too_large", "the payload is over the limit of the spool");
    }
    std::error_code error;
    if (!std::filesystem::is_directory(folder_, error)) {
      return Outcome::unavailable("no_folder", "the folder of the spool is not there");
    }
    Record record;
    for (const auto& field :
         {event.id.value().to_string(), event.type, event.content_type, event.payload}) {
      record.put(field);
    }
    for (const auto& [name, value] : event.headers) {
      record.put(name);
      record.put(value);
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(open_next(), &std::fclose);
    if (!file) return Outcome::refused("no_file", "no file can be made in the spool");
    const auto& bytes = record.bytes();
    const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
    if (!whole || std::fflush(file.get()) != 0) {
      return Outcome::unknown("write_failed", "the file may be there in part");
    }
    return Outcome::confirmed();
  }

  /// The first number that no file has. Another publisher may write into the same folder, so the
  /// name is taken by making the file.
  std::FILE* open_next() {
    for (;;) {
      auto* file = std::fopen(numbered_file(folder_, next_++).c_str(), "wbx");
      if (file != nullptr || errno != EEXIST) return file;
    }
  }

  std::filesystem::path folder_;
  std::size_t next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<postrider::MessageOutcome> outcomes_;  // At most a window, as the relay promises.
  bool woken_ = false;
};

/// A folder below the temporary one. Away means: it has another name.
class SpoolHarness : public postrider::testing::PublisherHarness {
 public:
  SpoolHarness() {
    auto pattern = (std::filesystem::temp_directory_path() / "postrider-spool-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    home_ = pattern;
    std::filesystem::create_directory(folder());
  }
  ~SpoolHarness() override { std::filesystem::remove_all(home_); }

  std::unique_ptr<postrider::Publisher> open_publisher() override {
    return std::make_unique<SpoolPublisher>(folder());
  }

  std::vector<postrider::testing::Received> received() override {
    std::vector<postrider::testing::Received> received;
    for (std::size_t count = 0; std::filesystem::exists(numbered_file(folder(), count)); ++count) {
      std::ifstream file(numbered_file(folder(), count), std::ios::binary);
      Record record(std::string(std::istreambuf_iterator<char>(file), {}));
      postrider::testing::Received message;
      message.event_id = record.take();
      message.type = record.take();
      message.content_type = record.take();
      message.payload = record.take();
      while (!record.ended()) {
        auto name = record.take();
        message.headers[std::move(name)] = record.take();
      }
      received.push_back(std::move(message));
    }
    return received;
  }

  bool take_down() override {
    std::filesystem::rename(folder(), away());
    return true;
  }
  bool bring_up() override {
    std::filesystem::rename(away(), folder());
    return true;
  }

 private:
  [[nodiscard]] std::filesystem::path folder() const { return home_ / "spool"; }
  [[nodiscard]] std::filesystem::path away() const { return home_ / "away"; }

  std::filesystem::path home_;
};

}  // namespace spool
