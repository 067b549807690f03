// One data set with one dimension, the only shape the store uses. Written once from front to back, read in blocks.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/h5/library.h"
#include "data/h5/numbers.h"
#include "etc_core/base/buffer.h"
#include "etc_core/base/integers.h"

namespace etc::data::h5 {

inline constexpr std::int64_t kChunk = 65536;  // elements (task-wikihop 8.1)

// Collects one chunk and writes it when it is full, so memory is one chunk and every chunk is compressed once.
class ColumnWriter {
 public:
  // Creates the data set: unlimited, chunks of kChunk, shuffle, deflate 4, fletcher32. Locked.
  ColumnWriter(hid_t group, const std::string& name, NumberType type, std::string where);

  // Append values that the caller has checked to be in the type's range. Locked.
  void append(std::span<const std::int64_t> values);
  void append(std::span<const float> values);
  void append(std::string_view bytes);  // of a uint8 column

  void flush();  // writes the last, partial chunk; nothing is appended after it. Locked
  std::int64_t size() const { return size_; }
  const std::string& where() const { return where_; }
  NumberType type() const { return type_; }

 private:
  template <typename Value>
  void append_converted(std::span<const Value> values);
  void write_chunk();

  std::string where_;
  NumberType type_;
  Handle data_set_;
  std::vector<char> pending_;  // the chunk being filled, in the memory representation
  std::int64_t size_ = 0;      // elements appended
  std::int64_t written_ = 0;   // elements in the file
};

// A piece of a column in memory.
struct Block {
  Bytes bytes;             // elements of the column's type
  std::int64_t first = 0;  // index of its first element
  std::int64_t size = 0;   // elements

  template <typename T>
  const T* as() const {
    return static_cast<const T*>(bytes.data());
  }
};

enum class NumberClass { integer, floating, any };

class ColumnReader {
 public:
  // Opens and checks (task-wikihop 8.1): hard link, one dimension, a number type of the wanted class, no filters but
  // the store's, no raw data outside the file, and a length that `file_bytes` bytes can hold, so that allocations are
  // bounded by the file's size. Throws Error. Locked.
  ColumnReader(hid_t group, const std::string& name, NumberClass wanted, std::uint64_t file_bytes, std::string where);

  std::int64_t size() const { return size_; }
  NumberType type() const { return type_; }
  const std::string& where() const { return where_; }
  std::int64_t block_elements() const { return block_elements_; }
  std::int64_t blocks() const { return ceil_div(size_, block_elements_); }

  // Block i: elements [i * block_elements, …). Throws Error when the library cannot read the block or the checksum is
  // wrong. Locked.
  Block load(std::int64_t index) const;

  // Like load, but in the file's little-endian type, for hashing. Locked.
  Block load_little_endian(std::int64_t index) const;

 private:
  Block load_as(std::int64_t index, hid_t type) const;
  bool unpack(Block& block) const;

  std::string where_;
  Handle data_set_;
  NumberType type_;
  std::int64_t size_ = 0;
  std::int64_t block_elements_ = kChunk;
  bool packed_ = false;  // every block is one chunk that unpack_chunk can decode without type conversion
};

}  // namespace etc::data::h5
