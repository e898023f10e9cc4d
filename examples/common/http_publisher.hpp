#pragma once
/// \file
/// A destination of one's own: events as HTTP requests to a service on this machine. An example of
/// the seam in postrider/publisher.hpp, and what `make demo` delivers with.
///
/// An event is `POST <target>` with the payload as body and the rest in headers, percent-encoded:
///     Content-Type, Postrider-Id, Postrider-Seq, Postrider-Type,
///     Postrider-Aggregate-Type, Postrider-Aggregate-Id (both only with an aggregate)
/// The receiver answers 2xx once the event is in its database.
///
///     2xx                       confirmed
///     408, 429, 5xx             refused, and tried again
///     any other status          rejected: it would be the same next time
///     no connection             unavailable: the route waits
///     no answer, or half of it  unknown: it may have arrived, and is sent again

#include <cstddef>
#include <memory>
#include <string>

#include <postrider/event.hpp>
#include <postrider/publisher.hpp>

#include "common/http.hpp"

namespace examples {

/// Larger payloads are rejected; a receiver has to take as much.
inline constexpr std::size_t most_http_payload_bytes = 1U << 20U;

struct HttpPublisherOptions {
  int port = 0;
  std::string target = "/events";
};

/// Sends one request after the other, from a thread of its own. An event's own headers do not
/// travel: see its traits.
[[nodiscard]] std::unique_ptr<postrider::Publisher> make_http_publisher(
    HttpPublisherOptions options);

/// The way back, for the receiver. Errors: `invalid_argument` when a header is missing or wrong.
[[nodiscard]] postrider::Result<postrider::Event> event_of(const HttpRequest& request);

}  // namespace examples
