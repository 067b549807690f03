#include "etc_core/checkpoint/convert/tf_bundle/bundle_reader.h"

#include <algorithm>
#include <vector>

#include "etc_core/base/crc32c.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/checkpoint/convert/tf_bundle/table.h"

namespace etc::convert {

namespace {

constexpr std::uint64_t kMaxIndexBytes = 16 << 20;  // bert-large with 396 variables has 17 KB
constexpr std::size_t kMaxTensors = 100'000;

}  // namespace

std::filesystem::path shard_path(const std::filesystem::path& prefix, std::int64_t shard, std::int64_t shards) {
  return prefix.string() + fmt::format(".data-{:05}-of-{:05}", shard, shards);
}

TfBundle::TfBundle(const std::filesystem::path& prefix) : prefix_(prefix), where_(prefix.string()) {
  const std::string index_file = where_ + ".index";
  const std::string index = read_file(index_file, kMaxIndexBytes);
  bool has_header = false;
  for_each_table_entry(index, index_file, [&](std::string_view key, std::string_view message) {
    if (key.empty()) {
      header_ = parse_bundle_header(message, index_file + ": header");
      has_header = true;
      return;
    }
    if (!has_header) fail(index_file, "no header: expected the empty name first, got {}", key);
    if (entries_.size() == kMaxTensors) fail(index_file, "expected at most {} tensors", kMaxTensors);
    const std::string place = fmt::format("{}: {}", index_file, key);
    BundleEntry entry = parse_bundle_entry(message, place);
    if (entry.shard < 0 || entry.shard >= header_.shards) {
      fail(place, "shard: expected 0 … {}, got {}", header_.shards - 1, entry.shard);
    }
    if (entry.dtype) {
      const auto bytes = bytes_of(*entry.dtype, entry.shape);
      if (!bytes || *bytes != entry.size) {
        fail(place, "{} has {} bytes, which do not agree with type and shape",
             SourceTensor{entry.dtype, entry.shape}.text(), entry.size);
      }
    }
    tensors_.emplace(key, SourceTensor{entry.dtype, entry.shape});
    entries_.emplace(key, std::move(entry));
  });
  if (!has_header) fail(index_file, "an empty table: expected a header");
  check_ranges();
}

void TfBundle::check_ranges() const {
  std::vector<std::pair<const std::string*, const BundleEntry*>> in_order;
  for (const auto& [name, entry] : entries_) {
    if (entry.size > 0) in_order.emplace_back(&name, &entry);
  }
  std::sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->shard, a.second->offset) < std::pair(b.second->shard, b.second->offset);
  });
  for (std::size_t i = 1; i < in_order.size(); ++i) {
    const BundleEntry &before = *in_order[i - 1].second, &entry = *in_order[i].second;
    if (entry.shard == before.shard && entry.offset - before.offset < before.size) {
      fail(where_ + ".index", "{} and {} overlap in shard {}", *in_order[i - 1].first, *in_order[i].first, entry.shard);
    }
  }
}

const BundleEntry& TfBundle::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail(where_, "no tensor {}", name);
  return found->second;
}

const InputFile& TfBundle::shard_of(std::string_view name, const BundleEntry& entry) const {
  const std::lock_guard lock(opening_);
  auto& file = open_[entry.shard];
  if (!file) file = std::make_unique<InputFile>(shard_path(prefix_, entry.shard, header_.shards));
  if (entry.offset > file->size() || entry.size > file->size() - entry.offset) {
    fail(file->path().string(), "{}: expected {} bytes at {}, the file has {} (cut off, or of another checkpoint)",
         name, entry.size, entry.offset, file->size());
  }
  return *file;
}

void TfBundle::require_numbers() const {
  for (const auto& [name, entry] : entries_) shard_of(name, entry);
}

void TfBundle::read_blocks(std::string_view name, void* out, const BytesRead& seen) const {
  const BundleEntry& what = entry(name);
  if (!what.dtype) fail(where_, "{}: expected numbers, got {}", name, at(name).text());
  const InputFile& file = shard_of(name, what);
  auto* to = static_cast<char*>(out);
  std::uint32_t crc = 0;
  for (std::uint64_t done = 0; done < what.size;) {
    const std::uint64_t count = std::min(kReadBlock, what.size - done);
    file.read(what.offset + done, count, to + done);
    crc = crc32c(crc, to + done, count);
    if (seen) seen(to + done, count);
    done += count;
  }
  if (masked_crc(crc) != what.masked_crc) {
    fail(file.path().string(), "{}: checksum: expected {:08x}, got {:08x} (the file is damaged)", name, what.masked_crc,
         masked_crc(crc));
  }
}

}  // namespace etc::convert
