#include <algorithm>
#include <array>
#include <cctype>

#include "registry/registry.hpp"

namespace postrider::registry {
namespace {

constexpr std::string_view mask = "***";

bool speaks_of_secret(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 5> words{"pass", "secret", "token", "key", "credential"};
  return std::any_of(words.begin(), words.end(),
                     [&](auto word) { return lower.find(word) != std::string::npos; });
}

// Up to the last @, and not only up to the first slash: a password that was not encoded may hold
// either, and hiding too much is the smaller evil.
std::string without_password(std::string_view text) {
  const auto at = text.rfind('@');
  if (at == std::string_view::npos) return std::string(text);
  const auto user_end = std::min(text.find(':'), at);
  std::string shown(text.substr(0, user_end));
  if (user_end < at) shown.append(1, ':').append(mask);
  return shown.append(text.substr(at));
}

std::string without_secret_parameters(std::string_view query) {
  std::string shown;
  while (!query.empty()) {
    const auto parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), parameter.size() + 1));
    const auto equals = parameter.find('=');
    const bool secret =
        equals != std::string_view::npos && speaks_of_secret(parameter.substr(0, equals));
    if (!shown.empty()) shown += '&';
    shown += secret ? std::string(parameter.substr(0, equals + 1)).append(mask) : parameter;
  }
  return shown;
}

}  // namespace

std::string redacted(std::string_view url) {
  const auto scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return std::string(url);
  const auto body = url.substr(scheme_end + 3);
  std::string shown(url.substr(0, scheme_end + 3));
  const auto question = body.find('?');
  if (question == std::string_view::npos) return shown.append(without_password(body));
  // With an @ behind it the question mark may belong to a password; then nothing is sure.
  const auto query = body.substr(question + 1);
  if (const auto at = query.rfind('@'); at != std::string_view::npos) {
    return shown.append(mask).append(query.substr(at));
  }
  shown.append(without_password(body.substr(0, question)));
  return shown.append(1, '?').append(without_secret_parameters(query));
}

}  // namespace postrider::registry
