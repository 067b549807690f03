// A checkpoint in several files, as PyTorch's libraries save large ones, with an index that says which tensor is where:
// model.safetensors.index.json, {"weight_map": {"encoder.layer.0.…": "model-00001-of-00002.safetensors", …}}.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "etc_core/checkpoint/convert/tensor_source.h"

namespace etc::convert {

// Opens the index and all its shards, each by `open`, which must not take an index for a shard. Throws Error naming the
// index where it is none, names a file elsewhere than beside itself, or a tensor that is not in its shard; naming the
// tensor where two shards have it.
using OpenShard = std::function<std::unique_ptr<TensorSource>(const std::filesystem::path& file)>;
std::unique_ptr<TensorSource> open_shards(const std::filesystem::path& index, const OpenShard& open);

}  // namespace etc::convert
