#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/dataset_info.h"
#include "data/h5/block_cache.h"
#include "data/h5/info.h"
#include "data/h5/library.h"
#include "data/h5/table.h"
#include "data/probe.h"
#include "etc_core/base/error.h"
#include "etc_core/base/machine_share.h"

namespace etc::data {

namespace {

// Capacity of the cache of decompressed blocks. Shuffled reading of a larger data set decompresses nearly every chunk
// of an example again. A sixteenth of the memory this process may use leaves room for several readers and a model; 2
// GiB hold all of the prepared WikiHop training set (1 GB).
std::int64_t cache_bytes() {
  constexpr std::int64_t kLeast = std::int64_t{64} << 20, kMost = std::int64_t{2} << 30, kShare = 16;
  return std::clamp(usable_memory() / kShare, kLeast, kMost);
}

constexpr const char* kProbed = "HDF5 data set";

// One open file. Built and destroyed under the library's Lock.
struct Shard {
  Shard(std::filesystem::path path_, const Schema& schema)
      : path(std::move(path_)), where(h5::where_of(path)), file(h5::open_file(path)) {
    const std::uint64_t bytes = std::filesystem::file_size(path);
    info = h5::read_info(file.id(), bytes, where);
    if (info.task != schema.task)
      fail(where, "task: expected {}, got {} (the file was prepared for another task)", schema.task, info.task);
    examples.emplace(file.id(), "examples", h5::stored_features(schema, info.preprocess_config), info.examples, bytes,
                     where);
    require_capacities(schema);
    rejects.emplace(file.id(), "rejects", h5::fault_features(schema), std::nullopt, bytes, where);
    if (schema.gold.empty()) return;
    gold.emplace(file.id(), "gold", schema.gold, info.input_records - info.rejected - info.dropped, bytes, where);
  }

  // No example is longer than the capacities that the preparation states (task-wikihop 8.3); they have these names where
  // both sides have one.
  void require_capacities(const Schema& schema) const {
    constexpr const char *kLong = "long_seq_len", *kGlobal = "global_seq_len";
    if (!info.preprocess_config.contains(kLong)) return;
    for (const auto& [key, align] : {std::pair(kLong, schema.long_align), std::pair(kGlobal, schema.global_align)}) {
      const auto capacity = info.preprocess_config.find(key);
      const Buffer<std::int64_t>* borders = examples->borders(align);
      if (capacity == info.preprocess_config.end() || !capacity->is_number_integer() || borders == nullptr) continue;
      for (std::int64_t i = 0; i + 1 < borders->size(); ++i) {
        const std::int64_t length = (*borders)[i + 1] - (*borders)[i];
        if (*capacity >= length) continue;
        fail(where, "example {} has {} {} tokens: expected at most preprocess_config.{}={} ({})", i, length, align, key,
             json_line(*capacity), h5::kDamaged);
      }
    }
  }

  void scan() const {
    examples->scan();
    rejects->scan();
    if (gold) gold->scan();
  }

  std::filesystem::path path;
  std::string where;
  h5::Handle file;
  DatasetInfo info;
  std::optional<h5::TableReader> examples, rejects, gold;  // gold: where the schema has it
};

[[noreturn]] void fail_shard(const Shard& shard, const Shard& first, const std::string& what,
                             const std::string& expected, const std::string& got) {
  fail(shard.where, "{}: expected {} as in {}, got {} (shards of one data set must be prepared alike)", what, expected,
       first.path.string(), got);
}

void require_alike(const Shard& shard, const Shard& first) {
  if (shard.info.vocab_sha256 != first.info.vocab_sha256)
    fail_shard(shard, first, "vocab_sha256", first.info.vocab_sha256, shard.info.vocab_sha256);
  if (shard.info.preprocess_config != first.info.preprocess_config)
    fail_shard(shard, first, "preprocess_config", json_line(first.info.preprocess_config),
               json_line(shard.info.preprocess_config));
}

DatasetInfo joined_info(const std::vector<Shard>& shards) {
  DatasetInfo all = shards.front().info;
  for (std::size_t i = 1; i < shards.size(); ++i) {
    const DatasetInfo& info = shards[i].info;
    all.labelled = all.labelled && info.labelled;
    all.input_records += info.input_records;
    all.examples += info.examples;
    all.rejected += info.rejected;
    all.dropped += info.dropped;
    all.max_long_len = std::max(all.max_long_len, info.max_long_len);
    all.max_global_len = std::max(all.max_global_len, info.max_global_len);
    all.source_files.insert(all.source_files.end(), info.source_files.begin(), info.source_files.end());
    all.missing.insert(all.missing.end(), info.missing.begin(), info.missing.end());
    all.content_sha256.clear();  // several files have no common hash
  }
  return all;
}

}  // namespace

struct DatasetReader::Impl {
  Impl(const std::vector<std::filesystem::path>& paths, const Schema& schema_, ReadOrder order) : schema(schema_) {
    if (paths.empty()) fail("h5", "expected at least one file");
    shards.reserve(paths.size());
    for (const std::filesystem::path& path : paths) {
      // The child inherits the Lock that this thread holds, so it may call the library.
      run_probe(kProbed, path, [&] {
        const Shard shard(path, schema);
        shard.scan();
      });
      shards.emplace_back(path, schema);
      require_alike(shards.back(), shards.front());
      starts.push_back(starts.back() + shards.back().examples->rows());
      gold_starts.push_back(gold_starts.back() + (shards.back().gold ? shards.back().gold->rows() : 0));
    }
    info = joined_info(shards);
    absent = h5::absent_features(schema, info.preprocess_config);
    const auto of_settings = [](const FeatureSpec& spec) { return spec.name == h5::kSettingsFeature; };
    if (std::any_of(schema.features.begin(), schema.features.end(), of_settings))
      settings = json_line(info.preprocess_config);
    if (order == ReadOrder::once) cache.limit(bytes_of_neighbours());
    for (const FeatureSpec& spec : schema.features) {
      if (!spec.align.empty() && !lengths.contains(spec.align)) lengths.emplace(spec.align, lengths_of(spec.align));
    }
  }

  // Two blocks of each column: an example may begin in one and end in the next.
  std::int64_t bytes_of_neighbours() const {
    std::int64_t most = 0;
    for (const Shard& shard : shards) {
      const std::int64_t gold = shard.gold ? shard.gold->block_bytes() : 0;
      most = std::max(most, 2 * (shard.examples->block_bytes() + gold));
    }
    return most;
  }

  Buffer<std::int64_t> lengths_of(const std::string& align) const {
    Buffer<std::int64_t> result(starts.back(), Purpose::data);
    std::int64_t at = 0;
    for (const Shard& shard : shards) {
      const Buffer<std::int64_t>* borders = shard.examples->borders(align);
      for (std::int64_t i = 0; i < shard.examples->rows(); ++i)
        result[at++] = borders == nullptr ? 0 : (*borders)[i + 1] - (*borders)[i];  // null: all its features are absent
    }
    return result;
  }

  // Maps an index over all shards to a shard and a row in it.
  std::pair<std::size_t, std::int64_t> locate(const std::vector<std::int64_t>& begins, std::int64_t index,
                                              const char* what) const {
    if (index < 0 || index >= begins.back())
      fail(shards.front().where, "expected {} index below {}, got {}", what, begins.back(), index);
    const auto after = std::upper_bound(begins.begin(), begins.end(), index);
    const std::size_t shard = static_cast<std::size_t>(after - begins.begin()) - 1;
    return {shard, index - begins[shard]};
  }

  Schema schema;
  std::vector<Shard> shards;
  std::vector<std::int64_t> starts{0};       // [shards+1] first example of each shard
  std::vector<std::int64_t> gold_starts{0};  // [shards+1] first row of gold of each shard
  DatasetInfo info;
  Example absent;        // of every shard alike
  std::string settings;  // the value of h5::kSettingsFeature; empty: the schema does not have it
  std::map<std::string, Buffer<std::int64_t>, std::less<>> lengths;  // align class → [examples]
  mutable h5::BlockCache cache{cache_bytes()};
};

DatasetReader::DatasetReader(std::vector<std::filesystem::path> paths, const Schema& schema, ReadOrder order) {
  const h5::Lock lock;
  impl_ = std::make_unique<Impl>(paths, schema, order);
}

DatasetReader::~DatasetReader() {
  const h5::Lock lock;
  impl_.reset();
}

const Schema& DatasetReader::schema() const {
  return impl_->schema;
}

std::int64_t DatasetReader::size() const {
  return impl_->starts.back();
}

const DatasetInfo& DatasetReader::info() const {
  return impl_->info;
}

std::vector<std::string> DatasetReader::content_hashes() const {
  std::vector<std::string> hashes;
  for (const Shard& shard : impl_->shards) hashes.push_back(shard.info.content_sha256);
  return hashes;
}

std::vector<std::string> DatasetReader::missing_texts() const {
  std::vector<std::string> texts;
  for (const Shard& shard : impl_->shards) {
    for (const MissingPart& part : shard.info.missing)
      texts.push_back(fmt::format("{}: the data set is incomplete: {}: {}", shard.where, part.name, part.reason));
  }
  return texts;
}

Example DatasetReader::read(std::int64_t index) const {
  const auto [shard, row] = impl_->locate(impl_->starts, index, "an example");
  Example example = impl_->shards[shard].examples->read(row, impl_->cache);
  example.insert(impl_->absent.begin(), impl_->absent.end());
  if (!impl_->settings.empty()) example.emplace(h5::kSettingsFeature, impl_->settings);
  return example;
}

std::int64_t DatasetReader::cache_growth() const {
  std::int64_t bytes = 0;
  for (const Shard& shard : impl_->shards) bytes += shard.examples->bytes();
  return impl_->cache.growth(bytes);
}

std::int64_t DatasetReader::gold_size() const {
  return impl_->gold_starts.back();
}

Example DatasetReader::read_gold(std::int64_t index) const {
  const auto [shard, row] = impl_->locate(impl_->gold_starts, index, "a gold");
  return impl_->shards[shard].gold->read(row, impl_->cache);
}

void DatasetReader::require_vocabulary(std::string_view vocab_sha256) const {
  const Shard& first = impl_->shards.front();  // require_alike: all shards have the same vocabulary
  if (first.info.vocab_sha256 != vocab_sha256)
    fail(first.where, "vocab_sha256: expected {}, got {} (prepare the data with the model's vocabulary)", vocab_sha256,
         first.info.vocab_sha256);
}

std::span<const std::int64_t> DatasetReader::lengths(std::string_view align) const {
  const auto found = impl_->lengths.find(align);
  if (found == impl_->lengths.end())
    fail(impl_->shards.front().where, "task {} has no align class {}", impl_->schema.task, align);
  return found->second.span();
}

std::vector<Fault> DatasetReader::faults() const {
  std::vector<Fault> faults;
  for (const Shard& shard : impl_->shards) {
    for (std::int64_t row = 0; row < shard.rejects->rows(); ++row)
      faults.push_back(h5::fault_of(shard.rejects->read(row, impl_->cache), impl_->schema, shard.where));
  }
  return faults;
}

DatasetInfo read_dataset_info(const std::filesystem::path& path) {
  const h5::Lock lock;
  const auto read = [&] {
    const h5::Handle file = h5::open_file(path);
    return h5::read_info(file.id(), std::filesystem::file_size(path), h5::where_of(path));
  };
  run_probe(kProbed, path, [&] { read(); });
  return read();
}

}  // namespace etc::data
