// Reads the bytes of a raw file sequentially, plain or gzip (detected by the first two bytes), in bounded memory. Also
// accepts input that has no size and can be read only once (a FIFO, standard input).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/text/sha256.h"
#include "etc_core/base/not_copied.h"

namespace etc::data {

inline constexpr const char* kStandardInput = "-";  // name of standard input as a raw file

std::string raw_file_text(const std::filesystem::path& path);  // for messages: the path, or "standard input"

class ByteStream : NotCopied {
 public:
  // path: "-" is standard input. Throws Error naming the file when it is missing, a folder or unreadable.
  explicit ByteStream(const std::filesystem::path& path);
  ~ByteStream();

  // Fills up to `size` bytes, uncompressed; 0 means the end. Throws Error on a read error. Damaged or truncated gzip
  // data throws nothing: the decompressed bytes before the damage are returned, then the stream ends and fault() tells
  // why.
  std::size_t read(char* to, std::size_t size);

  const std::string& fault() const;  // empty: no fault so far
  std::int64_t position() const;     // bytes read from the file so far, before decompression

  // For input that can be read only once: hashes every byte as stored in the file, from the first on. `hash` must
  // outlive the stream. Call it before any other function; read_rest() reads and hashes the remaining bytes.
  void hash_into(Sha256& hash);
  void read_rest();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
