// The uncompressed bytes of a raw file as a window that moves forward, with the place of its first byte; shared by the
// readers that cut records.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "data/readers/byte_stream.h"
#include "data/readers/record_reader.h"

namespace etc::data {

class TextBlocks {
 public:
  explicit TextBlocks(ByteStream& stream) : stream_(stream) {}

  // Makes at least `count` bytes available if the stream still has them and `count` is at most a block (1 MB); returns
  // how many are available. 0: the end. Pointers into the window are valid until the next call.
  std::size_t available(std::size_t count) {
    if (end_ - begin_ >= count) return end_ - begin_;
    std::memmove(block_.data(), block_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    while (end_ < count) {
      const std::size_t got = stream_.read(block_.data() + end_, block_.size() - end_);
      if (got == 0) break;
      end_ += got;
    }
    return end_;
  }

  // The window: what is available and not skipped yet.
  const char* begin() const { return block_.data() + begin_; }
  const char* end() const { return block_.data() + end_; }
  std::size_t size() const { return end_ - begin_; }

  const TextPosition& position() const { return position_; }  // of *begin()
  const std::string& fault() const { return stream_.fault(); }

  // count: at most size().
  void skip(std::size_t count) {
    position_.advance(begin(), count);
    begin_ += count;
  }

  // Like skip, for bytes without a line end.
  void skip_within_line(std::size_t count) {
    position_.byte_offset += static_cast<std::int64_t>(count);
    position_.column += static_cast<std::int64_t>(count);
    begin_ += count;
  }

  // Skips a byte-order mark at the very beginning, which does not count as a column; true if there was one.
  bool skip_byte_order_mark() {
    // Further bytes are requested only if the first may begin a mark: a pipe may hold only a short line.
    if (available(1) < 1 || *begin() != '\xEF') return false;
    if (available(3) < 3 || std::memcmp(begin(), "\xEF\xBB\xBF", 3) != 0) return false;
    skip(3);
    position_.column = 1;
    return true;
  }

 private:
  static constexpr std::size_t kBlockBytes = 1 << 20;

  ByteStream& stream_;
  std::vector<char> block_ = std::vector<char>(kBlockBytes);
  std::size_t begin_ = 0, end_ = 0;
  TextPosition position_;
};

}  // namespace etc::data
