// An order service: orders come in over HTTP, go into SQLite, and are announced through the outbox.
// It answers 201 whatever brokers do, because it talks to none. Start a relay beside it:
//
//     shop --database shop.db --port 8080
//     postrider init --store sqlite:shop.db --to amqp://…
//     postrider relay --loop

#include <iostream>

#include "common/http.hpp"
#include "common/options.hpp"
#include "shop/shop_api.hpp"

int main(int argc, char** argv) {
  try {
    const examples::Options options(argc, argv, {"--database", "--port"}, {});
    examples::shop::ShopApi api(options.required("--database"));
    examples::HttpServerOptions listen;
    listen.port = options.port("--port");
    examples::HttpServer server(listen, [&](const auto& request) { return api.handle(request); });
    std::cout << "shop: listening on http://127.0.0.1:" << server.port() << std::endl;
    server.run();
    return 0;
  } catch (const examples::UsageError& error) {
    std::cerr << "shop: " << error.what() << ". Usage: shop --database FILE [--port PORT]\n";
    return 64;
  } catch (const std::exception& error) {
    std::cerr << "shop: " << error.what() << '\n';
    return 70;
  }
}
