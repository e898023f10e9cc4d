// A worker for tests that kill it: runs one command, which starts another one, and waits.
//
//     exec-worker FOLDER
#include <cstdio>
#include <memory>

#include <postrider/runner/exec.hpp>

#include "run/run_marks.hpp"
#include "runners/runner_kit.hpp"

int main(int count, char** arguments) {
  if (count != 2) return 64;
  postrider::ExecOptions options;
  options.environment = postrider::testing::marks_of_run();
  options.environment["FOLDER"] = arguments[1];
  options.command = {"/bin/sh", "-c",
                     "sleep 600 & echo $! > $FOLDER/grandchild; echo $$ > $FOLDER/child; wait"};
  const auto runner = postrider::make_exec_runner(options);
  runner->start(postrider::testing::task(1));
  const auto report = postrider::testing::next_report(*runner);
  std::puts(postrider::testing::words_of(report.end).c_str());
  return 1;  // It was to be killed.
}
