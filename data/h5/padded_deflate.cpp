#include "data/h5/padded_deflate.h"

#include <algorithm>
#include <new>

namespace etc::data::h5 {

PaddedDeflate::PaddedDeflate(int level) {
  constexpr int kRawWindowBits = -15, kMemoryLevel = 8;
  if (deflateInit2(&state_, level, Z_DEFLATED, kRawWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
}

PaddedDeflate::~PaddedDeflate() {
  deflateEnd(&state_);
}

void PaddedDeflate::append(std::span<const std::byte> planes, std::size_t filled, std::size_t room,
                           std::vector<std::byte>& stream) {
  for (std::size_t begin = 0, end; begin < planes.size(); begin = end) {
    const auto is_zero = [&](std::size_t plane) {
      const auto bytes = planes.subspan(plane, filled);
      return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
    };
    for (end = begin + room; end < planes.size() && is_zero(end);) end += room;
    const std::size_t runs = (end - begin - filled) / kRun;
    append_blocks(planes.subspan(begin, end - begin - runs * kRun), stream);
    const std::vector<std::byte>& rest = zeros(runs);
    stream.insert(stream.end(), rest.begin(), rest.end());
  }
  for (const unsigned char last_and_empty : {0x03, 0x00}) stream.push_back(std::byte{last_and_empty});
}

void PaddedDeflate::append_blocks(std::span<const std::byte> bytes, std::vector<std::byte>& stream) {
  if (bytes.empty()) return;
  const std::size_t before = stream.size();
  stream.resize(before + deflateBound(&state_, bytes.size()) + kRun);
  state_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  state_.avail_in = static_cast<uInt>(bytes.size());
  state_.next_out = reinterpret_cast<Bytef*>(stream.data() + before);
  state_.avail_out = static_cast<uInt>(stream.size() - before);
  deflate(&state_, Z_FULL_FLUSH);
  stream.resize(stream.size() - state_.avail_out);
}

const std::vector<std::byte>& PaddedDeflate::zeros(std::size_t runs) {
  std::vector<std::byte>& known = zeros_[runs];
  if (known.empty()) append_blocks(std::vector<std::byte>(runs * kRun), known);
  return known;
}

}  // namespace etc::data::h5
