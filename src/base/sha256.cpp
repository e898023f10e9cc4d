#include "base/sha256.hpp"

#include <memory>

#include <openssl/evp.h>

#include "base/assert.hpp"

namespace postrider {

std::array<std::uint8_t, 32> sha256(std::initializer_list<std::string_view> parts) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  std::array<std::uint8_t, 32> digest{};
  bool sound = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (const auto part : parts) {
    sound = sound && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
  }
  sound = sound && EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1;
  POSTRIDER_ASSERT(sound);
  return digest;
}

}  // namespace postrider
