// Files of named tensors in the safetensors format: eight bytes with the header's length, a JSON header (name → dtype,
// shape, byte range; "__metadata__" → strings), then the bytes of all tensors, little-endian and without gaps.
//
// The reader checks everything: header at most 16 MB, every range inside the file, ranges neither overlap nor leave
// holes, sizes agree with dtype and shape, no name twice, no unknown key in an entry.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "etc_core/checkpoint/input_file.h"
#include "etc_core/tensor/tensor.h"

namespace etc {

enum class StoredDtype { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };
const char* stored_dtype_name(StoredDtype dtype);  // "F32", "BF16", …
std::uint64_t stored_dtype_bytes(StoredDtype dtype);

// Whether numbers of this type can be read as floats without loss: F32, F16, BF16.
bool is_readable_float(StoredDtype dtype);

// Widens `count` numbers of F16 or BF16.
void widen_floats(StoredDtype dtype, const std::uint16_t* stored, std::int64_t count, float* out);

// Called with numbers, or stored bytes, as soon as they are read: blocks in order, still in the processor's cache.
using NumbersRead = std::function<void(const float* numbers, std::int64_t count)>;
using BytesRead = std::function<void(const char* bytes, std::uint64_t count)>;
inline constexpr std::uint64_t kReadBlock = 256 << 10;  // bytes
BytesRead of_floats(const NumbersRead& seen);           // adapts `seen` to F32 bytes; empty stays empty

struct TensorEntry {
  StoredDtype dtype = StoredDtype::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // in bytes from the end of the header

  std::int64_t size() const;  // product of the shape
};

// Every failure throws Error naming the file and the tensor. Reading is safe for several threads at once.
class TensorFileReader {
 public:
  explicit TensorFileReader(const std::filesystem::path& path);  // reads the header only

  const std::filesystem::path& path() const { return file_.path(); }
  const std::map<std::string, TensorEntry, std::less<>>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  const TensorEntry& entry(std::string_view name) const;  // throws when absent

  // Reads F32 unchanged, F16 and BF16 widened; another dtype throws. `out` holds entry(name).size() numbers.
  void read_floats(std::string_view name, float* out, const NumbersRead& seen = {}) const;
  Tensor read_tensor(std::string_view name, Purpose purpose) const;

  // Whether the tensor can be used directly in a mapped file: F32, aligned to 64 bytes, and large enough.
  bool is_mappable(std::string_view name) const;
  // A mappable tensor as read-only memory (InputFile::map: the file must not be shortened meanwhile), charged to the
  // purpose like a copy, because its pages count as memory of the process. Throws Error if it is not mappable.
  Tensor map_tensor(std::string_view name, Purpose purpose) const;

  // Reads the tensor's bytes as stored in the file, end - begin of them.
  void read_raw(std::string_view name, void* out, const BytesRead& seen = {}) const;

  // I64 and I32; U64 and U32.
  std::vector<std::int64_t> read_i64(std::string_view name) const;
  std::vector<std::uint64_t> read_u64(std::string_view name) const;

 private:
  InputFile file_;
  std::uint64_t data_start_ = 0;
  std::map<std::string, TensorEntry, std::less<>> entries_;
  std::map<std::string, std::string> metadata_;
};

// Collects tensors, then writes them: those whose size is a multiple of 64 bytes first, then the others, each group in
// the order in which they were added. Since the header also ends at a multiple of 64 bytes, the first group is aligned;
// the format allows no gaps between tensors. Numbers passed as tensors or pointers are not copied and must live until
// write().
class TensorFileWriter {
 public:
  // Throws Error on a name used twice.
  void add(const std::string& name, const Tensor& values);
  void add(const std::string& name, std::vector<std::int64_t> shape, const float* values);
  void add_i64(const std::string& name, std::vector<std::int64_t> values);
  void add_u64(const std::string& name, std::vector<std::uint64_t> values);
  void set_metadata(const std::string& key, const std::string& text);

  // Writes a temporary file and renames it into place. Equal contents give byte-equal files. `written` is called after
  // each tensor with the number written so far; an exception from it stops the writing.
  void write(const std::filesystem::path& path, const std::function<void(std::int64_t tensors)>& written = {}) const;

 private:
  struct Item {
    std::string name;
    StoredDtype dtype;
    std::vector<std::int64_t> shape;
    const void* data;
    std::uint64_t bytes;
    std::shared_ptr<const void> owner;  // keeps numbers alive that were passed by value
  };
  void add_item(Item item);

  std::vector<Item> items_;
  std::unordered_set<std::string> names_;  // of items_
  std::map<std::string, std::string> metadata_;
};

}  // namespace etc
