#pragma once
#include <memory>

#include <postrider/publisher.hpp>
#include <postrider/publisher/file.hpp>

#include "publisher/file/line_sink.hpp"

namespace postrider::file {

/// `make_file_publisher` with the system calls given, for tests that make the disk fail.
[[nodiscard]] std::unique_ptr<Publisher> make_file_publisher(FileOptions options, FileCalls calls);

}  // namespace postrider::file
