// A delivery service with a database of its own. It takes the shop's events over HTTP or from a
// queue of RabbitMQ, each once in effect, however often it comes:
//
//     delivery --database delivery.db --port 8081
//     delivery --database delivery.db --from amqp://localhost

#include <iostream>

#include "common/http.hpp"
#include "common/http_publisher.hpp"
#include "common/options.hpp"
#include "common/stop_request.hpp"
#include "delivery/packing_desk.hpp"
#if EXAMPLES_WITH_RABBITMQ
#include "common/rabbitmq_consumer.hpp"
#endif

namespace {

using examples::delivery::PackingDesk;

int status_of(const postrider::Error& error) {
  std::cerr << "delivery: " << describe(error) << std::endl;
  return error.disposition == postrider::Disposition::reject ? 422 : 503;
}

examples::HttpResponse take(PackingDesk& desk, const examples::HttpRequest& request) {
  if (request.method != "POST" || request.target != "/events") return {404, "{}\n", {}};
  const auto event = examples::event_of(request);
  if (!event) return {status_of(event.error()), "{}\n", {}};
  const auto received = desk.receive(event.value());
  if (!received) return {status_of(received.error()), "{}\n", {}};
  return {200, "{\"result\":\"" + std::string(to_string(received.value())) + "\"}\n", {}};
}

void serve(PackingDesk& desk, int port) {
  examples::HttpServerOptions options;
  options.port = port;
  options.most_body_bytes = examples::most_http_payload_bytes;
  examples::HttpServer server(options, [&](const auto& request) { return take(desk, request); });
  std::cout << "delivery: listening on http://127.0.0.1:" << server.port() << std::endl;
  server.run();
}

void consume(PackingDesk& desk, const examples::Options& given) {
#if EXAMPLES_WITH_RABBITMQ
  examples::StopRequest stop;
  examples::RabbitmqConsumerOptions options;
  options.url = given.text("--from", "");
  options.exchange = given.text("--exchange", "shop");
  options.queue = given.text("--queue", "delivery");
  const auto handler = [&](const postrider::Event& event) -> postrider::Result<void> {
    const auto received = desk.receive(event);
    return received ? postrider::Result<void>() : received.error();
  };
  examples::consume(options, handler, [&] { return stop.came(); });
#else
  static_cast<void>(desk);
  throw examples::UsageError(given.text("--from", "") + ": this build has no RabbitMQ");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const examples::Options options(argc, argv,
                                    {"--database", "--port", "--from", "--exchange", "--queue"},
                                    {"--without-inbox"});
    const auto trust =
        options.has("--without-inbox") ? PackingDesk::Trust::luck : PackingDesk::Trust::inbox;
    PackingDesk desk(options.required("--database"), trust);
    if (options.has("--from")) {
      consume(desk, options);
    } else {
      serve(desk, options.port("--port"));
    }
    return 0;
  } catch (const examples::UsageError& error) {
    std::cerr << "delivery: " << error.what()
              << ". Usage: delivery --database FILE [--port PORT | --from amqp://… [--exchange "
                 "NAME] [--queue NAME]] [--without-inbox]\n";
    return 64;
  } catch (const std::exception& error) {
    std::cerr << "delivery: " << error.what() << '\n';
    return 70;
  }
}
