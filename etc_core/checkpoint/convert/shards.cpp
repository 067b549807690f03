#include "etc_core/checkpoint/convert/shards.h"

#include <map>
#include <string>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::convert {

namespace fs = std::filesystem;

namespace {

class ShardedSource : public TensorSource {
 public:
  explicit ShardedSource(const fs::path& index) : where_(index.string()) {}

  // Adds all tensors of a shard; `file` is its name.
  void add(const std::string& file, std::unique_ptr<TensorSource> shard) {
    for (const auto& [name, tensor] : shard->tensors()) {
      if (const auto there = file_of_.find(name); there != file_of_.end()) {
        fail(where_, "{}: expected in one shard, got it in {} and {}", name, there->second, file);
      }
      tensors_.emplace(name, tensor);
      file_of_.emplace(name, file);
    }
    shards_.emplace(file, std::move(shard));
  }
  bool has_shard(const std::string& file) const { return shards_.contains(file); }
  void require_in(const std::string& name, const std::string& file) const {
    if (!shards_.at(file)->tensors().contains(name)) {
      fail(where_, "{}: expected in {}, got a file without it (shards of another checkpoint?)", name, file);
    }
  }

  const SourceTensors& tensors() const override { return tensors_; }
  const std::string& where() const override { return where_; }
  void require_numbers() const override {
    for (const auto& [file, shard] : shards_) shard->require_numbers();
  }
  void read_blocks(std::string_view name, void* out, const BytesRead& seen) const override {
    at(name);  // throws when absent
    shards_.at(file_of_.find(name)->second)->read_blocks(name, out, seen);
  }

 private:
  std::string where_;
  SourceTensors tensors_;
  std::map<std::string, std::string, std::less<>> file_of_;  // by tensor
  std::map<std::string, std::unique_ptr<TensorSource>> shards_;
};

}  // namespace

std::unique_ptr<TensorSource> open_shards(const fs::path& index, const OpenShard& open) {
  const std::string where = index.string();
  const Json json = read_json_file(index);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object() || map->empty()) {
    fail(where, "expected a checkpoint, or the index of its shards with a weight_map, got neither");
  }
  auto source = std::make_unique<ShardedSource>(index);
  for (const auto& [name, value] : map->items()) {
    const std::string file = value.is_string() ? value.get<std::string>() : "";
    // Shards in other folders would let an untrusted index read any file.
    if (file.empty() || fs::path(file).filename() != file || file == "." || file == "..") {
      fail(where, "weight_map: {}: expected the name of a file beside the index, got {}", name, json_line(value));
    }
    if (!source->has_shard(file)) source->add(file, open(index.parent_path() / file));
    source->require_in(name, file);
  }
  return source;
}

}  // namespace etc::convert
