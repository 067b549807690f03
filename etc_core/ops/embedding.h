// Sums of table rows selected by integer ids (etc-core 3).
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"

namespace etc::ops {

// Tables, sums and gradients lie on the device; ids and offsets on the host.

// One table of an embedding sum. If `table` is null, the term is absent.
struct EmbeddingTerm {
  const float* table = nullptr;       // [limit, H]
  std::int64_t limit = 0;             // rows of the table: V for tokens
  const std::int32_t* ids = nullptr;  // [M]
  const char* name = "";              // of the ids, for messages: "token_ids", "global_position_ids"
};

// Embedding of every token.
//   e = base + tokens.table[id] + segments.table[id] + positions.table[id] + adder      (in this order)
//   base, adder   [M, H] null: absent (base: projected token embeddings when the table's width is not H)
//   e =           [M, H]; may be base or adder
//   offsets       [B+1]  used to name example and position in messages; null: M rows of one example
// Rules: a token or position id outside [0, limit) is an Error naming example, position, id and limit; a segment id
// outside [0, limit) contributes zeros, as in the reference.
struct EmbeddingForward {
  std::int64_t rows = 0, cols = 0;  // M, H
  const float* base = nullptr;
  EmbeddingTerm tokens = {}, segments = {}, positions = {};
  const float* adder = nullptr;
  float* e = nullptr;
  std::int64_t examples = 0;
  const std::int64_t* offsets = nullptr;
};
void embedding(Device device, const EmbeddingForward& args);

// Gradient of one table: dtable[id] += sum of de over the tokens with that id, in token order.
//   de [M, H],  ids [M],  dtable += [limit, H];  ids outside [0, limit) are skipped
// Rules: tokens are sorted by id (stable) and distinct ids are processed in parallel, so the bits are the same for any
// thread count. The gradients of base and adder are de itself.
// Cost: O(M·log M + M*H).
struct EmbeddingBackward {
  std::int64_t rows = 0, cols = 0, limit = 0;
  const float* de = nullptr;
  const std::int32_t* ids = nullptr;
  float* dtable = nullptr;
};
void embedding_backward(Device device, const EmbeddingBackward& args);

extern KernelSlot<void(const EmbeddingForward&)> embedding_kernel;
extern KernelSlot<void(const EmbeddingBackward&)> embedding_backward_kernel;

}  // namespace etc::ops
