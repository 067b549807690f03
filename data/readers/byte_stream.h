// The bytes of a raw file from front to back, plain or gzip (told apart by the first two bytes), in bounded memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace etc::data {

class ByteStream {
 public:
  // Throws Error naming the file when it is missing, a folder or unreadable.
  explicit ByteStream(const std::filesystem::path& path);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fills up to `size` bytes, uncompressed; 0 means the end. Throws Error when the machine cannot read on. Damaged or
  // cut gzip data is not an exception: what could be unpacked is delivered, then the stream ends and fault() tells why.
  std::size_t read(char* to, std::size_t size);

  const std::string& fault() const;  // empty: the stream ended (or goes on) as it should
  std::int64_t position() const;     // bytes of the file itself taken so far, for progress

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
