#include "servers/test_authority.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <stdexcept>
#include <utility>

namespace postrider::testing {
namespace {

struct Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Certificate = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;

void require(bool done) {
  if (!done) throw std::runtime_error("OpenSSL cannot make a test certificate");
}

Key make_key() {
  Key key(EVP_EC_gen("P-256"));
  require(key != nullptr);
  return key;
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  require(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

Certificate make_certificate(const std::string& common_name, long serial, long from_s, long until_s,
                             EVP_PKEY* key) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), from_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), until_s);
  X509_set_pubkey(certificate.get(), key);
  const auto* name = reinterpret_cast<const unsigned char*>(common_name.c_str());  // NOLINT
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC, name, -1,
                             -1, 0);
  return certificate;
}

template <class Write>
std::string write_pem(const std::string& path, Write&& write) {
  const std::unique_ptr<std::FILE, Free> file(std::fopen(path.c_str(), "w"));
  require(file != nullptr && write(file.get()) == 1);
  return path;
}

std::string alternative_names(const CertificateWish& wish) {
  std::string names;
  for (const auto& name : wish.dns_names)
    names += (names.empty() ? "DNS:" : ",DNS:") + name;
  for (const auto& address : wish.addresses)
    names += (names.empty() ? "IP:" : ",IP:") + address;
  return names;
}

}  // namespace

struct TestAuthority::Keys {
  Key key;
  Certificate certificate;
};

TestAuthority::TestAuthority(std::string folder, const std::string& name)
    : folder_(std::move(folder)), keys_(std::make_unique<Keys>()) {
  keys_->key = make_key();
  keys_->certificate = make_certificate(name, 1, -86'400, 864'000, keys_->key.get());
  X509* certificate = keys_->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  require(X509_sign(certificate, keys_->key.get(), EVP_sha256()) > 0);
  ca_file_ = write_pem(folder_ + "/" + name + ".pem",
                       [&](std::FILE* file) { return PEM_write_X509(file, certificate); });
}

TestAuthority::~TestAuthority() = default;

CertificateFiles TestAuthority::issue(const std::string& name, const CertificateWish& wish) {
  const Key key = make_key();
  const auto certificate =
      make_certificate(wish.dns_names.empty() ? name : wish.dns_names.front(), next_serial_++,
                       wish.valid_from_s, wish.valid_until_s, key.get());
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(keys_->certificate.get()));
  const auto names = alternative_names(wish);
  if (!names.empty()) {
    add_extension(certificate.get(), keys_->certificate.get(), NID_subject_alt_name, names);
  }
  require(X509_sign(certificate.get(), keys_->key.get(), EVP_sha256()) > 0);
  return {write_pem(folder_ + "/" + name + "-cert.pem",
                    [&](std::FILE* file) { return PEM_write_X509(file, certificate.get()); }),
          write_pem(folder_ + "/" + name + "-key.pem", [&](std::FILE* file) {
            return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace postrider::testing
