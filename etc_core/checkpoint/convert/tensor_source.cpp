#include "etc_core/checkpoint/convert/tensor_source.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/shape.h"
#include "etc_core/checkpoint/convert/pickle/torch_file.h"
#include "etc_core/checkpoint/convert/shards.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_reader.h"
#include "etc_core/checkpoint/input_file.h"

namespace etc::convert {

namespace fs = std::filesystem;

namespace {

// A safetensors file, through the same reader as for this program's checkpoints.
class SafetensorsSource : public TensorSource {
 public:
  explicit SafetensorsSource(const fs::path& path) : file_(path), where_(path.string()) {
    for (const auto& [name, entry] : file_.entries()) tensors_[name] = {entry.dtype, entry.shape};
  }
  const SourceTensors& tensors() const override { return tensors_; }
  const std::string& where() const override { return where_; }
  void read_blocks(std::string_view name, void* out, const BytesRead& seen) const override {
    file_.read_raw(name, out, seen);
  }

 private:
  TensorFileReader file_;
  std::string where_;
  SourceTensors tensors_;
};

std::unique_ptr<TensorSource> open_one(const fs::path& path) {
  const std::string first = InputFile(path).read_up_to(0, 4);
  if (looks_like_torch_file(first)) return std::make_unique<TorchFile>(path);
  return std::make_unique<SafetensorsSource>(path);
}

// A shard must not be an index itself: an index that names itself would cause endless recursion.
std::unique_ptr<TensorSource> open_file(const fs::path& path) {
  return path.extension() == ".json" ? open_shards(path, open_one) : open_one(path);
}

// The prefix of the one bundle in a folder; empty when there is none.
fs::path bundle_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".index") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  if (found.size() > 1) {
    fail_usage(folder.string(), "holds several TensorFlow checkpoints ({}, {}, …): name one of them",
               found[0].filename().string(), found[1].filename().string());
  }
  return found.empty() ? fs::path() : found[0].replace_extension();
}

}  // namespace

std::int64_t SourceTensor::count() const {
  return element_count(shape);
}

std::uint64_t SourceTensor::bytes() const {
  return dtype ? static_cast<std::uint64_t>(count()) * stored_dtype_bytes(*dtype) : 0;
}

std::string SourceTensor::text() const {
  return fmt::format("{} {}", dtype ? stored_dtype_name(*dtype) : "strings", shape_text(shape));
}

bool SourceTensor::matches(const std::vector<std::int64_t>& expected) const {
  return dtype && is_readable_float(*dtype) && shape == expected;
}

std::string SourceTensor::mismatch(const std::vector<std::int64_t>& expected) const {
  const bool readable = dtype && is_readable_float(*dtype);
  return fmt::format("expected {}{}, got {}", readable ? "" : "F32, F16 or BF16 ", shape_text(expected), text());
}

std::optional<std::uint64_t> bytes_of(StoredDtype dtype, const std::vector<std::int64_t>& shape) {
  std::uint64_t bytes = stored_dtype_bytes(dtype);
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
    // Multiplies by 1 instead of 0, so that a 0 does not hide the overflow of the other sizes.
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(1, size)), &bytes) ||
        bytes >> 62 != 0) {
      return std::nullopt;
    }
  }
  return empty ? 0 : bytes;
}

const SourceTensor& TensorSource::at(std::string_view name) const {
  const auto found = tensors().find(name);
  if (found == tensors().end()) fail(where(), "no tensor {}", name);
  return found->second;
}

void TensorSource::read_floats(std::string_view name, float* out, const NumbersRead& seen) const {
  const SourceTensor& tensor = at(name);
  if (!tensor.dtype || !is_readable_float(*tensor.dtype)) {
    fail(where(), "{}: expected F32, F16 or BF16, got {}", name, tensor.text());
  }
  if (*tensor.dtype == StoredDtype::f32) return read_blocks(name, out, of_floats(seen));
  std::vector<std::uint16_t> stored(static_cast<std::size_t>(tensor.count()));
  read_raw(name, stored.data());
  widen_floats(*tensor.dtype, stored.data(), tensor.count(), out);
  if (seen) seen(out, tensor.count());
}

std::vector<std::int64_t> TensorSource::read_integers(std::string_view name) const {
  const SourceTensor& tensor = at(name);
  std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.count()));
  if (tensor.dtype == StoredDtype::i64) {
    read_raw(name, values.data());
  } else if (tensor.dtype == StoredDtype::i32) {
    std::vector<std::int32_t> stored(values.size());
    read_raw(name, stored.data());
    std::copy(stored.begin(), stored.end(), values.begin());
  } else {
    fail(where(), "{}: expected I64 or I32, got {}", name, tensor.text());
  }
  return values;
}

std::unique_ptr<TensorSource> open_tensors(const fs::path& path) {
  if (fs::is_directory(path)) {
    for (const char* name :
         {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
      if (fs::exists(path / name)) return open_file(path / name);
    }
    const fs::path prefix = bundle_in(path);
    if (!prefix.empty()) return std::make_unique<TfBundle>(prefix);
    fail(path.string(),
         "expected model.safetensors, pytorch_model.bin or a TensorFlow checkpoint in this folder (shards: with "
         "model.safetensors.index.json)");
  }
  if (fs::exists(path.string() + ".index")) return std::make_unique<TfBundle>(path);
  if (path.extension() == ".index") return std::make_unique<TfBundle>(fs::path(path).replace_extension());
  if (!fs::exists(path)) {
    fail(path.string(),
         "no such file or folder: expected a checkpoint file, a folder, or the prefix of a TensorFlow checkpoint");
  }
  return open_file(path);
}

}  // namespace etc::convert
