#include "store/postgres/postgres_event_columns.hpp"

#include <utility>

#include "base/utf8.hpp"
#include "store/common/headers_codec.hpp"

namespace postrider::store::postgres {
namespace {

/// `text` of PostgreSQL holds neither NUL nor anything but UTF-8.
bool is_plain_text(std::string_view payload) {
  return payload.find('\0') == std::string_view::npos && !first_invalid_utf8(payload);
}

}  // namespace

Result<void> NewEventColumns::add(const NewEvent& event, const EventId& id) {
  ids_.push_back(id.value());
  const auto& aggregate = event.aggregate;
  aggregate_types_.push_back(aggregate ? OptionalView(aggregate->type) : std::nullopt);
  aggregate_ids_.push_back(aggregate ? OptionalView(aggregate->id) : std::nullopt);
  if (aggregate) keys_.insert(aggregate_key(*aggregate));
  aggregate_versions_.push_back(event.aggregate_version);
  types_.emplace_back(event.type);
  const bool plain = is_plain_text(event.payload);
  payloads_.push_back(plain ? OptionalView(event.payload) : std::nullopt);
  payload_bytes_.push_back(plain ? std::nullopt : OptionalView(event.payload));
  content_types_.emplace_back(event.content_type);
  available_at_.push_back(event.available_at);
  return add_headers(event.headers);
}

Result<void> NewEventColumns::add_headers(const Headers& headers) {
  if (headers.empty()) {
    headers_.emplace_back();
    return {};
  }
  auto text = encode_headers(headers);
  if (!text) return text.error();
  headers_.push_back(std::move(text).value());
  return {};
}

/// An empty text stands for none.
std::vector<NewEventColumns::OptionalView> NewEventColumns::headers_column() const {
  std::vector<OptionalView> column;
  for (const auto& text : headers_)
    column.push_back(text.empty() ? std::nullopt : OptionalView(text));
  return column;
}

Parameters NewEventColumns::insert_parameters() const {
  Parameters parameters;
  parameters.uuids(ids_).optional_texts(aggregate_types_).optional_texts(aggregate_ids_);
  parameters.optional_integers(aggregate_versions_).optional_texts(types_);
  parameters.optional_texts(payloads_).optional_bytes(payload_bytes_);
  parameters.optional_texts(content_types_).optional_texts(headers_column());
  parameters.optional_times(available_at_);
  return parameters;
}

Parameters NewEventColumns::lock_parameters() const {
  Parameters parameters;
  parameters.texts(std::vector<std::string>(keys_.begin(), keys_.end()));
  return parameters;
}

}  // namespace postrider::store::postgres
