// The client libraries say their versions themselves, at run time: a package upgrade may have
// changed them since the build. Their headers belong to their backends, so these functions,
// which none of them has ever changed, are declared here.

#include <fmt/format.h>

#include "registry/registry.hpp"

extern "C" {
const char* sqlite3_libversion(void);
int PQlibVersion(void);
const char* mysql_get_client_info(void);
const char* amqp_version(void);
char* curl_version(void);
}

namespace postrider::registry {

std::vector<ClientVersion> client_versions() {
  std::vector<ClientVersion> versions;
#if POSTRIDER_REGISTRY_SQLITE
  versions.push_back({"SQLite", sqlite3_libversion()});
#endif
#if POSTRIDER_REGISTRY_POSTGRES
  const int number = PQlibVersion();  // 150020 is 15.20
  versions.push_back({"libpq", fmt::format("{}.{}", number / 10'000, number % 10'000)});
#endif
#if POSTRIDER_REGISTRY_MARIADB
  versions.push_back({"libmariadb", mysql_get_client_info()});
#endif
#if POSTRIDER_REGISTRY_AMQP
  versions.push_back({"rabbitmq-c", amqp_version()});
#endif
#if POSTRIDER_REGISTRY_WEBHOOK
  const std::string_view all = curl_version();  // "libcurl/7.88.1 OpenSSL/3.0.19 zlib/…"
  const auto first = all.substr(0, all.find(' '));
  versions.push_back({"libcurl", std::string(first.substr(first.find('/') + 1))});
#endif
  return versions;
}

}  // namespace postrider::registry
