#include "data/text/sha256.h"

#include <openssl/evp.h>

#include <fstream>

#include "etc_core/base/error.h"

namespace etc::data {

struct Sha256::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Impl() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  if (EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr) != 1) fail("sha256", "OpenSSL cannot start the digest");
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(impl_->context, digest, &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path.string(), "cannot open");
  Sha256 hash;
  char block[65536];
  while (file.read(block, sizeof block) || file.gcount() > 0) {
    hash.update({block, static_cast<std::size_t>(file.gcount())});
  }
  if (file.bad()) fail(path.string(), "cannot read");
  return hash.hex();
}

}  // namespace etc::data
