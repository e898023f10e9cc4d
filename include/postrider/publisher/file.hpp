#pragma once
/// \file
/// A file of JSON Lines, or standard output, as destination.
///
/// One event is one line: {id, seq, aggregate_type, aggregate_id, type, content_type, headers,
/// created_at, payload}; `payload` is a JSON string when the bytes are valid UTF-8, else the member
/// `payload_base64` stands in its place. Source of the format: docs/brokers/file.md.

#include <cstddef>
#include <memory>
#include <string>

#include <postrider/publisher.hpp>

namespace postrider {

struct FileOptions {
  std::string path;           ///< appended to; created when absent. Empty: standard output
  std::size_t window = 1000;  ///< lines that share one fsync, 1 to 10,000
};

/// Confirms after fsync. A line that was cut by a crash is completed with a newline before the
/// next. Nothing is opened before the first submit.
[[nodiscard]] std::unique_ptr<Publisher> make_file_publisher(FileOptions options);

}  // namespace postrider
