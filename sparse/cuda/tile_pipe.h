// Double buffering of key tiles in shared memory: one buffer is in use while the other is filled. If two buffers do not
// fit, there is only one.
#pragma once

#include <cstdint>

#include "etc_core/base/integers.h"
#include "sparse/cuda/products.h"

namespace etc::sparse::cuda {

// Used on the host instead of a SharedArena: counts the bytes of the tiles that a kernel takes from it. A kernel lays
// out its tiles in one function for both.
struct SharedBytes {
  std::int64_t bytes = 0;

  template <typename T>
  constexpr SharedTile<T> take(int elements) {
    bytes += round_up(std::int64_t{elements} * static_cast<int>(sizeof(T)), 16);
    return {};
  }
};

//   tile n        arrive: copy n+1 begins, wait for n | compute on n | leave
//   tile n + 1    arrive: copy n+2 begins, wait for n+1 | ...
// With one buffer only: arrive waits for n, leave begins the copy of n+1. Every thread of the block calls begin, arrive
// and leave, in this order, with or without work to do, because they contain barriers.
// Bytes at D = 64 in bf16: 72 rows of 144 bytes, keys and values, two buffers: 41,472.
template <typename Products>
class TilePipe {
 public:
  using Tile = typename Products::Tile;

  template <typename Arena>
  static constexpr TilePipe take(Arena& arena, const AttentionSizes& sizes) {
    using Value = typename Products::Value;
    const int size = kTileRows * Products::stride(sizes.head_size);
    TilePipe pipe;
    // With one buffer both names refer to the same tile.
    pipe.ahead_ = sizes.buffers == 2;
    pipe.k0_ = pipe.k1_ = arena.template take<Value>(size);
    pipe.v0_ = pipe.v1_ = arena.template take<Value>(size);
    if (!pipe.ahead_) return pipe;
    pipe.k1_ = arena.template take<Value>(size);
    pipe.v1_ = arena.template take<Value>(size);
    return pipe;
  }

  // Starts copying the item's first tile. Copies started earlier are waited for together with it.
  template <typename Params>
  ETC_DEVICE void begin(const Params& p, const QueryItem& item, std::int64_t head) {
    if (item.tile_begin < item.tile_end) copy(p, item, head, item.tile_begin);
    simt::copy_async_commit();
  }
  // When this returns, tile n is visible to the whole block; the next one is being copied if there are two buffers.
  template <typename Params>
  ETC_DEVICE void arrive(const Params& p, const QueryItem& item, std::int64_t head, int n) {
    // The copy of tile n was started one tile ago, so waiting for all copy groups but the newest completes it.
    if (ahead_) {
      if (n + 1 < item.tile_end) copy(p, item, head, n + 1);
      simt::copy_async_commit();
      simt::copy_async_wait<1>();
    } else {
      simt::copy_async_wait<0>();
    }
    simt::sync_block();
    // Which of the two buffers holds tile n.
    odd_ = ahead_ && (n - item.tile_begin) % 2 == 1;
  }
  // Called when a thread is done with tile n.
  template <typename Params>
  ETC_DEVICE void leave(const Params& p, const QueryItem& item, std::int64_t head, int n) {
    simt::sync_block();
    // With one buffer the next copy may begin only now that no thread reads the old tile.
    if (ahead_ || n + 1 >= item.tile_end) return;
    copy(p, item, head, n + 1);
    simt::copy_async_commit();
  }
  ETC_DEVICE Tile keys() const { return odd_ ? k1_ : k0_; }
  ETC_DEVICE Tile values() const { return odd_ ? v1_ : v0_; }

 private:
  template <typename Params>
  ETC_DEVICE void copy(const Params& p, const QueryItem& item, std::int64_t head, int n) {
    // Rows beyond the example become zeros: their pairs are masked, but products with them must stay finite.
    const KeyTile tile = simt::load(p.work.tiles, n);
    const int type = tile.type, head_size = p.sizes.head_size;
    const Team block{simt::thread_index(), kBlockThreads};
    // Selected, not indexed: indexing would move the item to local memory.
    const int valid = (type == 0 ? item.keys[0] : item.keys[1]) - tile.first_key;
    const std::int64_t row = (type == 0 ? item.key_row[0] : item.key_row[1]) + tile.first_key;
    const bool odd = (n - item.tile_begin) % 2 == 1;
    Products::copy_rows(odd ? k1_ : k0_, rows_of_head(p.k[type], head, row, valid), kTileRows, head_size, block);
    Products::copy_rows(odd ? v1_ : v0_, rows_of_head(p.v[type], head, row, valid), kTileRows, head_size, block);
  }

  Tile k0_, k1_, v0_, v1_;
  bool ahead_ = true, odd_ = false;
};

// Returns the bytes of a block's tiles and decides what does not fit: first the relative terms move to global memory,
// then prefetching is given up. All head sizes that the kernels accept fit in the end.
inline constexpr std::int64_t kMaxTileBytes = 160 * 1024;  // sm_80 has 163 KB for a block
template <typename Tiles>
std::int64_t fit_shared(AttentionSizes& sizes) {
  std::int64_t bytes = 0;
  // In order of cost: labels in global memory cost a read per pair, a single buffer costs all overlap of copying and
  // computing.
  for (int buffers : {2, 1}) {
    for (int labels : {sizes.labels, 0}) {
      sizes.buffers = buffers;
      sizes.shared_labels = labels;
      SharedBytes arena;
      Tiles::take(arena, sizes);
      bytes = arena.bytes;
      if (bytes <= kMaxTileBytes) return bytes;
    }
  }
  return bytes;  // refused by the launch
}

}  // namespace etc::sparse::cuda
