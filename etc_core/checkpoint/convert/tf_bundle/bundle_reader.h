// TensorFlow's V2 checkpoints ("tensor bundles") without TensorFlow: PREFIX.index, a table of names, and the numbers in
// PREFIX.data-00000-of-0000N, one file per shard.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_proto.h"
#include "etc_core/checkpoint/input_file.h"

namespace etc::convert {

class TfBundle : public TensorSource {
 public:
  // Reads and checks the index; shards are opened when numbers are asked for, so an index alone can be listed.
  // Rules: at most 100,000 tensors in at most 16 MB of index; sizes agree with type and shape; the ranges of a shard do
  //   not overlap; no variable is saved in slices. Throws Error naming file and tensor.
  explicit TfBundle(const std::filesystem::path& prefix);

  const SourceTensors& tensors() const override { return tensors_; }
  const std::string& where() const override { return where_; }
  void read_blocks(std::string_view name, void* out, const BytesRead& seen) const override;
  void require_numbers() const override;

  const BundleEntry& entry(std::string_view name) const;  // throws Error when absent
  std::int64_t shards() const { return header_.shards; }

 private:
  // The opened shard of an entry, after checking that it holds the entry's bytes.
  const InputFile& shard_of(std::string_view name, const BundleEntry& entry) const;
  void check_ranges() const;

  std::filesystem::path prefix_;
  std::string where_;
  BundleHeader header_;
  std::map<std::string, BundleEntry, std::less<>> entries_;
  SourceTensors tensors_;
  mutable std::mutex opening_;
  mutable std::map<std::int64_t, std::unique_ptr<InputFile>> open_;
};

// "PREFIX.data-00003-of-00017"
std::filesystem::path shard_path(const std::filesystem::path& prefix, std::int64_t shard, std::int64_t shards);

}  // namespace etc::convert
