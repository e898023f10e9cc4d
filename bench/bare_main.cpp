// bench-bare read-and-mark --conninfo C --events N
// bench-bare jobs --conninfo C --jobs N --connections W --batch B
// bench-bare publish --port P --queue Q --events N --window W
//
// Prints {"seconds": S}.
#include <exception>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "bench/arguments.hpp"
#include "bench/bare.hpp"

namespace postrider::bench {
namespace {

double run(const std::string& what, const Arguments& arguments) {
  if (what == "jobs") {
    return take_and_complete(arguments.text("conninfo"), arguments.number("jobs", 0),
                             arguments.number("connections", 1), arguments.number("batch", 100));
  }
  const auto events = arguments.number("events", 0);
  if (what == "read-and-mark") return read_and_mark(arguments.text("conninfo"), events);
  if (what == "publish") {
    return publish(static_cast<int>(arguments.number("port", 0)), arguments.text("queue"), events,
                   arguments.number("window", 1000));
  }
  throw std::invalid_argument("usage: bench-bare read-and-mark|jobs|publish …");
}

}  // namespace
}  // namespace postrider::bench

int main(int count, char** words) {
  using namespace postrider::bench;
  try {
    const auto seconds = run(count > 1 ? words[1] : "", Arguments(count, words, 2));
    std::cout << nlohmann::json{{"seconds", seconds}} << "\n";
    return 0;
  } catch (const std::exception& failure) {
    std::cout << failure.what() << "\n";
    return 1;
  }
}
