// The named tensors of one checkpoint, whatever its container: TensorFlow V2 bundle, safetensors, PyTorch file.
//
// Opening reads and checks the directory of the container, never its numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/checkpoint/tensor_file.h"

namespace etc::convert {

struct SourceTensor {
  std::optional<StoredDtype> dtype;  // none: holds no numbers (strings of a TensorFlow checkpoint)
  std::vector<std::int64_t> shape;

  std::int64_t count() const;  // product of the shape
  std::uint64_t bytes() const;
  std::string text() const;  // "F32 [768, 768]"

  // matches(): whether floats of this shape can be read; mismatch(): the reason if not, "expected [8], got F32 [2]".
  bool matches(const std::vector<std::int64_t>& expected) const;
  std::string mismatch(const std::vector<std::int64_t>& expected) const;
};

// The bytes of a tensor whose type and shape come from an untrusted file; nullopt if no memory could hold it.
std::optional<std::uint64_t> bytes_of(StoredDtype dtype, const std::vector<std::int64_t>& shape);

using SourceTensors = std::map<std::string, SourceTensor, std::less<>>;

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  virtual const SourceTensors& tensors() const = 0;
  virtual const std::string& where() const = 0;  // the file, for messages

  // Reads the numbers as stored, row-major, little-endian: `bytes()` bytes. Checks the container's checksum. Throws
  // Error on a tensor without numbers.
  // May be called by several threads at once.
  void read_raw(std::string_view name, void* out) const { read_blocks(name, out, {}); }

  // Throws Error unless the files hold all bytes that the directory lists. To be called before allocating memory.
  virtual void require_numbers() const {}

  const SourceTensor& at(std::string_view name) const;  // throws Error when absent

  // F32 unchanged, F16 and BF16 widened; throws Error naming the tensor on another type. `out` holds count() numbers.
  void read_floats(std::string_view name, float* out, const NumbersRead& seen = {}) const;
  // I64 and I32.
  std::vector<std::int64_t> read_integers(std::string_view name) const;

  // read_raw(), which also passes all bytes in order to `seen` (if set).
  virtual void read_blocks(std::string_view name, void* out, const BytesRead& seen) const = 0;
};

// Opens a checkpoint and detects its format.
//   a folder       model.safetensors, pytorch_model.bin (each also as shards with NAME.index.json, shards.h) or the one
//                  TensorFlow bundle in it, in this order
//   a file         safetensors or PyTorch (zip or the older stream of pickles), by its first bytes; *.json: shards
//   PREFIX         of PREFIX.index and PREFIX.data-00000-of-0000N: a TensorFlow bundle; PREFIX.index is the same
// Throws Error naming the file, and what is wrong with it or which files were searched.
std::unique_ptr<TensorSource> open_tensors(const std::filesystem::path& path);

}  // namespace etc::convert
