#include "publisher/common/transport_headers.hpp"

namespace postrider::publisher {

Headers transport_headers(const Event& event) {
  Headers headers = event.headers;
  headers.insert_or_assign(std::string(seq_header), std::to_string(event.seq.value()));
  headers.erase(std::string(aggregate_type_header));
  headers.erase(std::string(aggregate_id_header));
  if (event.aggregate) {
    headers.insert_or_assign(std::string(aggregate_type_header), event.aggregate->type);
    headers.insert_or_assign(std::string(aggregate_id_header), event.aggregate->id);
  }
  return headers;
}

}  // namespace postrider::publisher
