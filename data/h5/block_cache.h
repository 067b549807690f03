// LRU cache of blocks, shared by all columns of a data set, so that neighbouring and repeated reads decompress once.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "data/h5/column.h"

namespace etc::data::h5 {

// Least recently used blocks are evicted when more than `capacity` bytes are held (the newest always stays).
// Thread-safe; takes the library's Lock to load a block, so the caller must not hold it.
class BlockCache {
 public:
  explicit BlockCache(std::int64_t capacity) : capacity_(capacity) {}

  // Block `index` of `column`, which must outlive the cache. Stays valid for as long as the pointer is held.
  std::shared_ptr<const Block> get(const ColumnReader& column, std::int64_t index);

  // Sets another capacity; call before the first get().
  void limit(std::int64_t capacity) { capacity_ = capacity; }

  // Bytes by which the cache may still grow, given that all columns together have column_bytes.
  std::int64_t growth(std::int64_t column_bytes);

 private:
  using Key = std::pair<const ColumnReader*, std::int64_t>;
  struct Entry {
    Key key;
    std::shared_ptr<const Block> block;
  };

  std::shared_ptr<const Block> find(const Key& key);
  void keep(const Key& key, std::shared_ptr<const Block> block);

  std::mutex mutex_;  // guards the members below; not held during calls into the library
  std::int64_t capacity_;
  std::int64_t held_ = 0;    // bytes
  std::list<Entry> newest_;  // front: most recently used
  std::map<Key, std::list<Entry>::iterator> where_;
};

}  // namespace etc::data::h5
