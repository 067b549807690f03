// The bytes of a raw file from front to back, plain or gzip (told apart by the first two bytes), in bounded memory. A
// stream that has no size and can be read only once (a FIFO, standard input) serves as well.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/text/sha256.h"
#include "etc_core/base/not_copied.h"

namespace etc::data {

inline constexpr const char* kStandardInput = "-";  // as the name of a raw file

std::string raw_file_text(const std::filesystem::path& path);  // for messages: the path, or "standard input"

class ByteStream : NotCopied {
 public:
  // path: "-" is standard input. Throws Error naming the file when it is missing, a folder or unreadable.
  explicit ByteStream(const std::filesystem::path& path);
  ~ByteStream();

  // Fills up to `size` bytes, uncompressed; 0 means the end. Throws Error when the machine cannot read on. Damaged or
  // cut gzip data is not an exception: what could be unpacked is delivered, then the stream ends and fault() tells why.
  std::size_t read(char* to, std::size_t size);

  const std::string& fault() const;  // empty: the stream ended (or goes on) as it should
  std::int64_t position() const;     // bytes of the file itself taken so far

  // For files that can be read only once: every byte of the file itself, from the first on and as it is stored, goes
  // into `hash`, which must outlive the stream. To be called before anything else; read_rest() takes what nobody read.
  void hash_into(Sha256& hash);
  void read_rest();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
