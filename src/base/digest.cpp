#include "base/digest.hpp"

#include <memory>

#include <openssl/evp.h>

#include "base/assert.hpp"

namespace postrider {
namespace {

template <std::size_t size>
std::array<std::uint8_t, size> digest_of(const EVP_MD* algorithm,
                                         std::initializer_list<std::string_view> parts) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  POSTRIDER_ASSERT(static_cast<std::size_t>(EVP_MD_get_size(algorithm)) == size);
  std::array<std::uint8_t, size> digest{};
  bool sound = context && EVP_DigestInit_ex(context.get(), algorithm, nullptr) == 1;
  for (const auto part : parts) {
    sound = sound && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
  }
  sound = sound && EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1;
  POSTRIDER_ASSERT(sound);
  return digest;
}

}  // namespace

std::array<std::uint8_t, 16> md5(std::initializer_list<std::string_view> parts) {
  return digest_of<16>(EVP_md5(), parts);
}

std::array<std::uint8_t, 32> sha256(std::initializer_list<std::string_view> parts) {
  return digest_of<32>(EVP_sha256(), parts);
}

}  // namespace postrider
