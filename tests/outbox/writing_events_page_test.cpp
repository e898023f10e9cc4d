// The page about writing events: each of its snippets is a region of a test.

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace postrider {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(std::string(POSTRIDER_TEST_SOURCE_DIR "/") + path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The lines between two lines `// [name]`, without the indentation that all of them share.
std::string region_of(const std::string& path, const std::string& name) {
  std::istringstream lines(read_file(path));
  std::vector<std::string> found;
  std::size_t indent = std::string::npos;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("// [" + name + "]") != std::string::npos) {
      inside = !inside;
    } else if (inside) {
      indent = std::min(indent, line.find_first_not_of(' '));
      found.push_back(line);
    }
  }
  EXPECT_FALSE(found.empty()) << name;
  std::string text;
  for (const auto& line : found)
    text += (line.empty() ? line : line.substr(indent)) + "\n";
  return text;
}

TEST(WritingEventsPage, Every_snippet_is_the_region_of_a_test) {
  const auto page = read_file("docs/learn/writing-events.md");
  std::size_t snippets = 0;
  constexpr std::string_view mark = "<!-- region ";
  for (auto at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    std::istringstream words(
        page.substr(at + mark.size(), page.find("-->", at) - at - mark.size()));
    std::string path;
    std::string name;
    words >> path >> name;
    const auto begin = page.find("```cpp\n", at) + 7;
    EXPECT_EQ(page.substr(begin, page.find("```", begin) - begin), region_of(path, name)) << name;
    ++snippets;
  }
  std::size_t fences = 0;
  for (auto at = page.find("```cpp"); at != std::string::npos; at = page.find("```cpp", at + 1)) {
    ++fences;
  }
  EXPECT_EQ(snippets, fences) << "a snippet without a region";
  EXPECT_GT(snippets, 0U);
}

}  // namespace
}  // namespace postrider
