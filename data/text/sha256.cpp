#include "data/text/sha256.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

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
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) fail(path.string(), "cannot open: {}", std::strerror(errno));
  Sha256 hash;
  char block[65536];
  while (const std::size_t got = std::fread(block, 1, sizeof block, file.get())) hash.update({block, got});
  if (std::ferror(file.get()) != 0) fail(path.string(), "cannot read: {}", std::strerror(errno));
  return hash.hex();
}

}  // namespace etc::data
