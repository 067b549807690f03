// Writes TensorFlow V2 checkpoints that TensorFlow and the reader in this folder can load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/tensor/tensor.h"

namespace etc::convert {

class TfBundleWriter {
 public:
  // Tensors are distributed over `shards` data files, with equal numbers of consecutive tensors in each.
  explicit TfBundleWriter(std::int64_t shards = 1, std::size_t block_bytes = 256 << 10);

  // Numbers are not copied: they must live until write(). Names in any order, each once: else write() throws Error.
  void add(const std::string& name, const Tensor& values);
  void add(const std::string& name, std::vector<std::int64_t> shape, const float* values);
  void add_i64(const std::string& name, std::int64_t value);  // a scalar, such as global_step

  // Writes PREFIX.index and the shards, each file atomically, the index last. Equal contents give byte-equal files.
  // `written` is called after each tensor with the number written so far; an exception from it stops the writing.
  void write(const std::filesystem::path& prefix, const std::function<void(std::int64_t tensors)>& written = {}) const;

 private:
  struct Item {
    std::string name;
    std::vector<std::int64_t> shape;
    StoredDtype dtype = StoredDtype::f32;
    Tensor owner;                    // keeps `numbers` alive, if it came as a tensor
    const float* numbers = nullptr;  // F32
    std::int64_t integer = 0;        // I64
  };
  std::int64_t shards_;
  std::size_t block_bytes_;
  std::vector<Item> items_;
};

}  // namespace etc::convert
