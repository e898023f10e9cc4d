#pragma once
/// \file
/// A certificate authority that lives as long as a test, and certificates signed by it.

#include <memory>
#include <string>
#include <vector>

namespace postrider::testing {

struct CertificateWish {
  std::vector<std::string> dns_names;  ///< the first one is also the common name
  std::vector<std::string> addresses;
  long valid_from_s = -3600;  ///< seconds from now
  long valid_until_s = 86'400;
};

struct CertificateFiles {
  std::string certificate_file;
  std::string key_file;
};

/// Thread safety: one thread at a time.
class TestAuthority {
 public:
  /// Writes files into `folder`, which must exist; their names begin with `name`.
  TestAuthority(std::string folder, const std::string& name);
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  [[nodiscard]] const std::string& ca_file() const { return ca_file_; }
  CertificateFiles issue(const std::string& name, const CertificateWish& wish);

 private:
  struct Keys;
  std::string folder_;
  std::string ca_file_;
  std::unique_ptr<Keys> keys_;
  long next_serial_ = 2;
};

}  // namespace postrider::testing
