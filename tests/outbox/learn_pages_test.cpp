// The pages of docs/learn: each of their snippets is a region of a test or an example.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace postrider {
namespace {

constexpr std::string_view source_dir = POSTRIDER_TEST_SOURCE_DIR "/";
constexpr std::string_view region_mark = "<!-- region ";
constexpr std::string_view transcript_mark = "<!-- part of ";
/// Commands (bash) and tables of a reader's own (sql) are in no file of ours.
const std::vector<std::string> languages = {"cpp", "cmake", "python", "sh"};

std::string read_file(const std::string& path) {
  std::ifstream file(std::string(source_dir) + path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The lines between two comment lines `[name]`, without the indentation that all of them share.
std::string region_of(const std::string& path, const std::string& name) {
  std::istringstream lines(read_file(path));
  std::vector<std::string> found;
  std::size_t indent = std::string::npos;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("// [" + name + "]") != std::string::npos || line == "# [" + name + "]") {
      inside = !inside;
    } else if (inside) {
      indent = std::min(indent, line.find_first_not_of(' '));
      found.push_back(line);
    }
  }
  EXPECT_FALSE(found.empty()) << path << " has no region " << name;
  std::string text;
  for (const auto& line : found)
    text += (line.empty() ? line : line.substr(indent)) + "\n";
  return text;
}

struct Snippet {
  std::string source;  ///< what the comment before it names
  std::string text;
};

/// The fenced blocks that follow a comment which begins with `mark`.
std::vector<Snippet> snippets_of(const std::string& page, std::string_view mark) {
  std::vector<Snippet> snippets;
  for (auto at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const auto source = at + mark.size();
    const auto begin = page.find('\n', page.find("```", at)) + 1;
    snippets.push_back({page.substr(source, page.find(" -->", source) - source),
                        page.substr(begin, page.find("```", begin) - begin)});
  }
  return snippets;
}

/// Compares every snippet that names a region; returns how many do.
std::size_t compare_regions(const std::string& page) {
  const auto snippets = snippets_of(page, region_mark);
  for (const auto& [source, text] : snippets) {
    const auto space = source.find(' ');
    EXPECT_EQ(text, region_of(source.substr(0, space), source.substr(space + 1))) << source;
  }
  return snippets.size();
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

std::vector<std::string> learn_pages() {
  std::vector<std::string> names;
  const auto folder = std::string(source_dir) + "docs/learn";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back("docs/learn/" + entry.path().filename().string());
  return names;
}

TEST(LearnPages, Every_snippet_is_a_region_of_a_test_or_an_example) {
  std::size_t snippets = 0;
  for (const auto& name : learn_pages()) {
    const auto page = read_file(name);
    const auto compared = compare_regions(page);
    std::size_t fences = 0;
    for (const auto& language : languages)
      fences += count_of(page, "```" + language + "\n");
    EXPECT_EQ(compared, fences) << name << " has a snippet without a region";
    snippets += compared;
  }
  EXPECT_GT(snippets, 0U);
}

TEST(LearnPages, Every_transcript_is_part_of_a_golden_file) {
  std::size_t transcripts = 0;
  for (const auto& name : learn_pages()) {
    for (const auto& [source, text] : snippets_of(read_file(name), transcript_mark)) {
      EXPECT_THAT(read_file(source), ::testing::HasSubstr(text)) << name;
      ++transcripts;
    }
  }
  EXPECT_GT(transcripts, 0U);
}

}  // namespace
}  // namespace postrider
