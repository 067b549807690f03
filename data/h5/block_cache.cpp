#include "data/h5/block_cache.h"

#include <algorithm>

namespace etc::data::h5 {

std::shared_ptr<const Block> BlockCache::get(const ColumnReader& column, std::int64_t index) {
  const Key key{&column, index};
  if (auto block = find(key)) return block;
  const Lock library;
  // Another thread may have loaded it while this one waited for the library.
  if (auto block = find(key)) return block;
  auto block = std::make_shared<const Block>(column.load(index));
  keep(key, block);
  return block;
}

std::int64_t BlockCache::growth(std::int64_t column_bytes) {
  const std::lock_guard guard(mutex_);
  return std::max<std::int64_t>(0, std::min(capacity_, column_bytes) - held_);
}

std::shared_ptr<const Block> BlockCache::find(const Key& key) {
  const std::lock_guard guard(mutex_);
  const auto found = where_.find(key);
  if (found == where_.end()) return nullptr;
  newest_.splice(newest_.begin(), newest_, found->second);
  return newest_.front().block;
}

void BlockCache::keep(const Key& key, std::shared_ptr<const Block> block) {
  const std::lock_guard guard(mutex_);
  held_ += block->bytes.size();
  newest_.push_front({key, std::move(block)});
  where_[key] = newest_.begin();
  while (held_ > capacity_ && newest_.size() > 1) {
    held_ -= newest_.back().block->bytes.size();
    where_.erase(newest_.back().key);
    newest_.pop_back();
  }
}

}  // namespace etc::data::h5
