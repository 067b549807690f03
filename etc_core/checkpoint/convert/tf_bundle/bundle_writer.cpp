#include "etc_core/checkpoint/convert/tf_bundle/bundle_writer.h"

#include <algorithm>

#include "etc_core/base/crc32c.h"
#include "etc_core/base/files.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_proto.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_reader.h"
#include "etc_core/checkpoint/convert/tf_bundle/table.h"

namespace etc::convert {

TfBundleWriter::TfBundleWriter(std::int64_t shards, std::size_t block_bytes)
    : shards_(shards), block_bytes_(block_bytes) {}

void TfBundleWriter::add(const std::string& name, const Tensor& values) {
  items_.push_back({name, values.shape(), StoredDtype::f32, values, values.data(), 0});
}

void TfBundleWriter::add(const std::string& name, std::vector<std::int64_t> shape, const float* values) {
  items_.push_back({name, std::move(shape), StoredDtype::f32, Tensor(), values, 0});
}

void TfBundleWriter::add_i64(const std::string& name, std::int64_t value) {
  items_.push_back({name, {}, StoredDtype::i64, Tensor(), nullptr, value});
}

void TfBundleWriter::write(const std::filesystem::path& prefix,
                           const std::function<void(std::int64_t)>& written) const {
  std::vector<const Item*> in_order;
  for (const Item& item : items_) in_order.push_back(&item);
  std::sort(in_order.begin(), in_order.end(), [](const Item* a, const Item* b) { return a->name < b->name; });

  TableWriter index(block_bytes_);
  index.add("", bundle_header_message({shards_}));
  const auto count = static_cast<std::int64_t>(in_order.size());
  std::int64_t done = 0;
  for (std::int64_t shard = 0; shard < shards_; ++shard) {
    AtomicFile file(shard_path(prefix, shard, shards_));
    std::uint64_t offset = 0;
    for (std::int64_t i = count * shard / shards_; i < count * (shard + 1) / shards_; ++i) {
      const Item& item = *in_order[static_cast<std::size_t>(i)];
      BundleEntry entry;
      entry.dtype = item.dtype;
      entry.shape = item.shape;
      entry.shard = shard;
      entry.offset = offset;
      entry.size = SourceTensor{entry.dtype, entry.shape}.bytes();
      const auto* bytes = item.dtype == StoredDtype::f32 ? reinterpret_cast<const char*>(item.numbers)
                                                         : reinterpret_cast<const char*>(&item.integer);
      entry.masked_crc = masked_crc(crc32c(0, bytes, entry.size));
      if (entry.size > 0) file.write({bytes, entry.size});
      index.add(item.name, bundle_entry_message(entry));
      offset += entry.size;
      if (written) written(++done);
    }
    file.commit();
  }
  write_file_atomically(prefix.string() + ".index", index.finish());
}

}  // namespace etc::convert
