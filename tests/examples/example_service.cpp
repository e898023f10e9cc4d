#include "examples/example_service.hpp"

#include <fstream>
#include <iterator>

namespace postrider::testing {

ExampleService::ExampleService(const TemporaryFolder& folder, const std::string& name,
                               const std::vector<std::string>& arguments, const std::string& ready)
    : output_file_(folder.file(name + ".log")) {
  const auto said_before = output().size();
  std::vector<std::string> command{example(name)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  process_ =
      std::make_unique<ChildProcess>(command, Environment{{"PATH", "/usr/bin:/bin"}}, output_file_);
  const bool came_up = eventually([&] {
    const auto at = output().find(ready, said_before);
    return at != std::string::npos && output().find('\n', at) != std::string::npos;
  });
  EXPECT_TRUE(came_up) << name << " says: " << output();
  const std::string address = "http://127.0.0.1:";
  const auto at = output().find(address, said_before);
  if (at != std::string::npos) port_ = std::stoi(output().substr(at + address.size()));
}

std::string ExampleService::output() const {
  std::ifstream file(output_file_, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace postrider::testing
