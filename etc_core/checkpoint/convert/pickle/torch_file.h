// A PyTorch state dictionary (`pytorch_model.bin`) as named tensors: the zip form of PyTorch 1.6 and later, and the
// older stream of pickles followed by the storages.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "etc_core/checkpoint/convert/pickle/pickle.h"
#include "etc_core/checkpoint/convert/tensor_source.h"

namespace etc::convert {

// Whether a file with these first bytes should be read by TorchFile.
bool looks_like_torch_file(std::string_view first_bytes);

// Access to the numbers of storages; one implementation per form of the file.
class TorchStorages {
 public:
  virtual ~TorchStorages() = default;
  virtual std::uint64_t bytes(const std::string& key) const = 0;  // throws Error when there is no such storage
  virtual void read(const std::string& key, std::uint64_t begin, std::uint64_t size, void* out) const = 0;
};

class TorchFile : public TensorSource {
 public:
  // Rules: the file holds one dictionary of strings to tensors, each name once; every view lies inside its storage and
  //   has no more elements than the storage; every storage lies inside the file.
  explicit TorchFile(const std::filesystem::path& path);

  const SourceTensors& tensors() const override { return tensors_; }
  const std::string& where() const override { return where_; }
  void read_blocks(std::string_view name, void* out, const BytesRead& seen) const override;

 private:
  void add(const std::string& name, const TensorView& view);
  void read_view(std::string_view name, std::uint64_t bytes, void* out) const;

  std::string where_;
  std::unique_ptr<TorchStorages> storages_;
  std::map<std::string, TensorView, std::less<>> views_;
  SourceTensors tensors_;
};

}  // namespace etc::convert
