#include "base/digest.hpp"

#include <memory>
#include <string>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

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

std::array<std::uint8_t, 32> hmac_sha256(std::string_view key,
                                         std::initializer_list<std::string_view> parts) {
  const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> algorithm(
      EVP_MAC_fetch(nullptr, "HMAC", nullptr), &EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(
      EVP_MAC_CTX_new(algorithm.get()), &EVP_MAC_CTX_free);
  std::string digest_name = "SHA256";
  const std::array parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest_name.data(), 0),
      OSSL_PARAM_construct_end()};
  bool sound =
      context && EVP_MAC_init(context.get(), reinterpret_cast<const unsigned char*>(key.data()),
                              key.size(), parameters.data()) == 1;
  for (const auto part : parts) {
    sound =
        sound && EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(part.data()),
                                part.size()) == 1;
  }
  std::array<std::uint8_t, 32> digest{};
  std::size_t size = 0;
  sound = sound && EVP_MAC_final(context.get(), digest.data(), &size, digest.size()) == 1;
  POSTRIDER_ASSERT(sound && size == digest.size());
  return digest;
}

bool equal_in_constant_time(std::string_view one, std::string_view other) noexcept {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace postrider
