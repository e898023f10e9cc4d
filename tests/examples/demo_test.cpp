// `make demo` as a newcomer sees it, but for the build.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

#include "cli/program.hpp"
#include "examples/example_service.hpp"
#include "golden/golden.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Command lines of processes that name `text`.
std::vector<std::string> processes_that_name(const std::string& text) {
  std::vector<std::string> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    if (line.find(text) != std::string::npos) found.push_back(line);
  }
  return found;
}

class Demo : public ::testing::Test {
 protected:
  Demo() {
    std::filesystem::create_directory(temporary_);
    shop_.variables["TMPDIR"] = temporary_;
  }

  [[nodiscard]] Finished run(std::vector<std::string> words = {}) {
    words.insert(words.begin(), example("demo"));
    return shop_.run_program(words);
  }
  [[nodiscard]] Finished interrupt_by(int number) {
    Running demo(shop_.path(""), {example("demo")}, shop_.variables, {},
                 shop_.path(".run-interrupted-" + std::to_string(++interruptions_)));
    // One service runs by then, and the other one starts.
    EXPECT_TRUE(demo.prints("3. The delivery service starts"));
    demo.signal(number);
    return demo.finish();
  }
  void expect_nothing_is_left() const {
    EXPECT_TRUE(std::filesystem::is_empty(temporary_));
    EXPECT_THAT(processes_that_name(temporary_), IsEmpty());
  }

  Workshop shop_;
  const std::filesystem::path temporary_ = shop_.path("tmp");
  int interruptions_ = 0;
};

TEST_F(Demo, ends_by_itself_with_every_promise_kept_and_reads_as_its_golden_transcript) {
  const auto demo = run();
  EXPECT_EQ(demo.code, 0) << demo.err;
  EXPECT_THAT(demo.out, Not(HasSubstr("BROKEN")));
  expect_golden("demo.txt", demo.out);
  expect_nothing_is_left();
}

TEST_F(Demo, tells_of_a_broken_promise_in_words_and_by_its_exit_code) {
  const auto demo = run({"--without-inbox"});
  EXPECT_EQ(demo.code, 1) << demo.err;
  EXPECT_THAT(demo.out, HasSubstr("BROKEN: a copy had its effect again"));
  EXPECT_THAT(demo.out, HasSubstr("BROKEN: an order has several"));
  expect_nothing_is_left();
}

TEST_F(Demo, leaves_neither_process_nor_folder_when_it_is_interrupted) {
  for (const int number : {SIGINT, SIGTERM}) {
    // On a busy machine the demo may end before the signal has come.
    auto demo = interrupt_by(number);
    for (int tries = 1; demo.code == 0 && tries < 10; ++tries)
      demo = interrupt_by(number);
    EXPECT_EQ(demo.code, 130);
    EXPECT_THAT(demo.err, HasSubstr("interrupted"));
    expect_nothing_is_left();
  }
}

TEST_F(Demo, refuses_what_it_does_not_know) {
  const auto demo = run({"--faster"});
  EXPECT_EQ(demo.code, 64);
  EXPECT_THAT(demo.err, HasSubstr("unknown option --faster"));
}

}  // namespace
}  // namespace postrider::testing
