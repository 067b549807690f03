// Compresses planes that end in zeros: chunks of columns that are much shorter than a chunk. Compressors spend as long on
// a zero as on any other byte, so runs of zeros are compressed once and kept.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace etc::data::h5 {

class PaddedDeflate {
 public:
  explicit PaddedDeflate(int level);
  PaddedDeflate(const PaddedDeflate&) = delete;
  PaddedDeflate& operator=(const PaddedDeflate&) = delete;
  ~PaddedDeflate();

  // Whether planes of `room` bytes, of which `filled` may differ from 0, are faster compressed here.
  static bool suits(std::size_t filled, std::size_t room) { return room >= 2 * kRun && 8 * filled <= room; }

  // Appends the deflate stream, without header and checksum, of planes of `room` bytes each; after the first `filled`
  // bytes of each all are 0. Equal planes give equal streams.
  void append(std::span<const std::byte> planes, std::size_t filled, std::size_t room, std::vector<std::byte>& stream);

 private:
  static constexpr std::size_t kRun = 4096;
  // Appends blocks that end at a whole byte and refer to nothing before them.
  void append_blocks(std::span<const std::byte> bytes, std::vector<std::byte>& stream);
  // Such blocks of `runs` times kRun zeros.
  const std::vector<std::byte>& zeros(std::size_t runs);

  z_stream state_{};
  std::map<std::size_t, std::vector<std::byte>> zeros_;
};

}  // namespace etc::data::h5
