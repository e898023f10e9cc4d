#include "cli/finding_view.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/table.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

Style style_of(FindingSeverity severity) {
  switch (severity) {
    case FindingSeverity::error:
      return Style::red;
    case FindingSeverity::warning:
      return Style::yellow;
    case FindingSeverity::note:
      return Style::plain;
  }
  return Style::plain;
}

std::vector<Finding> by_severity(std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const auto& a, const auto& b) { return a.severity > b.severity; });
  return findings;
}

std::int64_t count(const std::vector<Finding>& findings, FindingSeverity severity) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const auto& finding) { return finding.severity == severity; });
}

std::string paragraph(const Finding& finding, const Console& console) {
  return fmt::format(
      "{} {} ({})\n  what: {}\n  why:  {}\n  do:   {}\n",
      console.styled(style_of(finding.severity), fmt::format("{}:", to_string(finding.severity))),
      finding.code, harmless(finding.subject), harmless(finding.what), harmless(finding.why),
      harmless(finding.fix));
}

}  // namespace

std::string findings_text(const std::vector<Finding>& findings, const Console& console) {
  std::string text;
  for (const auto& finding : by_severity(findings))
    text += paragraph(finding, console) + "\n";
  return text + fmt::format("{}, {}, {}.\n",
                            counted(count(findings, FindingSeverity::error), "error"),
                            counted(count(findings, FindingSeverity::warning), "warning"),
                            counted(count(findings, FindingSeverity::note), "note"));
}

Json findings_json(const std::vector<Finding>& findings) {
  Json json;
  json["errors"] = count(findings, FindingSeverity::error);
  json["warnings"] = count(findings, FindingSeverity::warning);
  json["notes"] = count(findings, FindingSeverity::note);
  json["findings"] = Json::array();
  for (const auto& finding : by_severity(findings)) {
    json["findings"].push_back({{"code", finding.code},
                                {"severity", to_string(finding.severity)},
                                {"subject", finding.subject},
                                {"what", finding.what},
                                {"why", finding.why},
                                {"fix", finding.fix}});
  }
  return json;
}

std::optional<FindingSeverity> worst(const std::vector<Finding>& findings) {
  std::optional<FindingSeverity> worst;
  for (const auto& finding : findings)
    worst = std::max(worst.value_or(finding.severity), finding.severity);
  return worst;
}

}  // namespace postrider::cli
