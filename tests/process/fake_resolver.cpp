// LD_PRELOAD: answers for host names that a test has written into the file that
// POSTRIDER_TEST_HOSTS names, which is read at each question. A line is a name and what becomes of
// it: addresses, in the order in which they are answered; or `fail`; or `slow MILLISECONDS`, after
// which it fails. Other names go to the system.
#include <dlfcn.h>
#include <netdb.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace {

using Resolver = int (*)(const char*, const char*, const addrinfo*, addrinfo**);

Resolver system_resolver() {
  return reinterpret_cast<Resolver>(dlsym(RTLD_NEXT, "getaddrinfo"));
}

/// Empty when the test has nothing to say of the name.
std::string fate_of(const std::string& name) {
  const char* const path = std::getenv("POSTRIDER_TEST_HOSTS");  // NOLINT(concurrency-mt-unsafe)
  std::ifstream hosts(path == nullptr ? "" : path);
  for (std::string line; std::getline(hosts, line);) {
    if (line.starts_with(name + " ")) return line.substr(name.size() + 1);
  }
  return {};
}

// Each address is resolved by the system and its result hung onto the last one's; the system frees
// a list one by one.
int resolve_all(std::istringstream& addresses, const char* service, const addrinfo* hints,
                addrinfo** found) {
  *found = nullptr;
  for (std::string address; addresses >> address;) {
    addrinfo* one = nullptr;
    const int failure = system_resolver()(address.c_str(), service, hints, &one);
    if (failure != 0) return failure;
    auto** end = found;
    while (*end != nullptr)
      end = &(*end)->ai_next;
    *end = one;
  }
  return *found == nullptr ? EAI_NONAME : 0;
}

}  // namespace

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  const auto fate = name == nullptr ? std::string() : fate_of(name);
  if (fate.empty()) return system_resolver()(name, service, hints, found);
  std::istringstream words(fate);
  if (fate.starts_with("fail")) return EAI_NONAME;
  if (fate.starts_with("slow")) {
    std::string slow;
    std::chrono::milliseconds::rep wait = 0;
    words >> slow >> wait;
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
    return EAI_AGAIN;
  }
  return resolve_all(words, service, hints, found);
}
