#include "etc_core/ops/embedding.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"
#include "etc_core/base/shape.h"

namespace etc::ops {

constinit KernelSlot<void(const EmbeddingForward&)> embedding_kernel{"embedding"};
constinit KernelSlot<void(const EmbeddingBackward&)> embedding_backward_kernel{"embedding_backward"};

namespace {

// Throws an Error for the first id outside the table, naming example and position, which callers know, instead of the
// row of the batch.
void check_ids(const EmbeddingForward& args, const EmbeddingTerm& term) {
  if (term.table == nullptr) return;
  const auto limit = static_cast<std::uint64_t>(term.limit);
  for (std::int64_t row = 0; row < args.rows; ++row) {
    if (static_cast<std::uint64_t>(static_cast<std::int64_t>(term.ids[row])) < limit) continue;
    std::int64_t example = 0, first = 0;
    if (args.offsets != nullptr) {
      example = std::upper_bound(args.offsets, args.offsets + args.examples + 1, row) - args.offsets - 1;
      first = args.offsets[example];
    }
    fail("embedding", "{}: example {}, position {}: expected an id from 0 to {}, got {}", term.name, example,
         row - first, term.limit - 1, term.ids[row]);
  }
}

}  // namespace

void embedding(Device device, const EmbeddingForward& args) {
  constexpr const char* kWhere = "embedding";
  if (args.rows < 0 || args.cols < 1) {
    fail(kWhere, "sizes: expected M >= 0, H >= 1, got {}", shape_text({{"M", args.rows}, {"H", args.cols}}));
  }
  if (args.rows == 0) return;
  if (args.e == nullptr) fail(kWhere, "e is missing (null)");
  for (const EmbeddingTerm* term : {&args.tokens, &args.segments, &args.positions}) {
    if (term->table != nullptr && term->ids == nullptr) fail(kWhere, "{} are missing (null)", term->name);
  }
  if (args.offsets != nullptr && args.offsets[args.examples] != args.rows) {
    fail(kWhere, "offsets: expected the last to be M={}, got {}", args.rows, args.offsets[args.examples]);
  }
  check_ids(args, args.tokens);
  check_ids(args, args.positions);
  const int tables = (args.tokens.table != nullptr) + (args.segments.table != nullptr) +
                     (args.positions.table != nullptr) + (args.base != nullptr) + (args.adder != nullptr);
  const profiler::Scope profiled(kWhere, {0, 4.0 * (1 + tables) * static_cast<double>(args.rows * args.cols)});
  embedding_kernel(device, args);
}

void embedding_backward(Device device, const EmbeddingBackward& args) {
  constexpr const char* kWhere = "embedding_backward";
  if (args.rows < 0 || args.cols < 1 || args.limit < 0) {
    fail(kWhere, "sizes: expected M >= 0, H >= 1, limit >= 0, got {}",
         shape_text({{"M", args.rows}, {"H", args.cols}, {"limit", args.limit}}));
  }
  if (args.rows == 0) return;
  if (args.de == nullptr || args.ids == nullptr || args.dtable == nullptr) {
    fail(kWhere, "{} missing (null)", args.de == nullptr ? "de is" : (args.ids == nullptr ? "ids are" : "dtable is"));
  }
  const profiler::Scope profiled(kWhere, {0, 12.0 * static_cast<double>(args.rows * args.cols)});
  embedding_backward_kernel(device, args);
}

}  // namespace etc::ops
