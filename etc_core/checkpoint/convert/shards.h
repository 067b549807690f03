// A sharded checkpoint, as PyTorch's libraries save large ones, with an index that maps each tensor to its file:
// model.safetensors.index.json, {"weight_map": {"encoder.layer.0.…": "model-00001-of-00002.safetensors", …}}.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "etc_core/checkpoint/convert/tensor_source.h"

namespace etc::convert {

// Opens the index and all its shards; each shard with `open`, which must not accept an index. Throws Error naming the
// index when it is not an index, names a file outside its own folder, or names a tensor that is not in its shard; and
// naming the tensor when two shards have it.
using OpenShard = std::function<std::unique_ptr<TensorSource>(const std::filesystem::path& file)>;
std::unique_ptr<TensorSource> open_shards(const std::filesystem::path& index, const OpenShard& open);

}  // namespace etc::convert
