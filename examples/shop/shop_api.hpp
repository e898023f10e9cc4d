#pragma once
/// \file
/// The shop over HTTP. It knows a database and no broker, so its answers depend on no broker.
///
///     POST /orders                  {"item": "lamp", "quantity": 1}    201
///     POST /orders/{id}/payment                                        200
///     POST /orders/{id}/shipment                                       200
///     GET  /orders/{id}                                                200
///
/// A POST with a header `Idempotency-Key` (1 to 255 printable ASCII characters) is done once: a
/// repetition is given the first answer, with the header `Idempotency-Replayed: true`. The same key
/// on another request is refused with 422. Keys are kept for a day. A refused request leaves no
/// key, so it may be repeated when its reason is gone.
///
/// An error is {"error": "<word>", "message": "<sentence>"}, with "field" where one is at fault.

#include <string>

#include "common/database.hpp"
#include "common/http.hpp"

namespace examples::shop {

class ShopApi {
 public:
  /// Creates what is missing in the database.
  explicit ShopApi(const std::string& database_path);

  HttpResponse handle(const HttpRequest& request);

 private:
  HttpResponse post(const HttpRequest& request);
  HttpResponse get(const HttpRequest& request);

  Database database_;
};

}  // namespace examples::shop
