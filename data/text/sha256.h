// Incremental SHA-256 (wraps OpenSSL).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace etc::data {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::string_view bytes);
  std::string hex();  // 64 lower-case hex digits; call once, at the end

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string sha256_hex(std::string_view bytes);
// Throws Error naming the file and the reason if it cannot be opened or read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace etc::data
