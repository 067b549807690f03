#include "etc_core/ops/dropout.h"

#include "etc_core/base/error.h"
#include "etc_core/base/offsets.h"
#include "etc_core/base/profiler.h"
#include "etc_core/base/shape.h"

namespace etc::ops {

constinit KernelSlot<void(const DropoutAdd&)> dropout_add_kernel{"dropout_add"};

void check_dropout(const char* where, const HiddenDropout& dropout, std::int64_t rows) {
  if (!(dropout.rate >= 0 && dropout.rate < 1)) {
    fail(where, "dropout.rate: expected at least 0 and below 1, got {}", dropout.rate);
  }
  if (dropout.rate == 0) return;
  if (dropout.examples < 0 || dropout.offsets == nullptr || dropout.sample_ordinals == nullptr) {
    fail(where, "dropout needs offsets [B+1] and sample_ordinals [B], B={}, of which {} missing (null)",
         dropout.examples, dropout.offsets == nullptr ? "the offsets are" : "the ordinals are");
  }
  check_offsets(where, "dropout.offsets", dropout.offsets, dropout.examples);
  if (dropout.offsets[0] != 0 || dropout.offsets[dropout.examples] != rows) {
    fail(where, "dropout.offsets: expected 0 … M={}, got {} … {}", rows, dropout.offsets[0],
         dropout.offsets[dropout.examples]);
  }
}

void dropout_add(Device device, const DropoutAdd& args) {
  constexpr const char* kWhere = "dropout_add";
  if (args.rows < 0 || args.cols < 1) {
    fail(kWhere, "sizes: expected M >= 0, H >= 1, got {}", shape_text({{"M", args.rows}, {"H", args.cols}}));
  }
  check_dropout(kWhere, args.dropout, args.rows);
  if (args.rows == 0) return;
  if (args.a == nullptr || args.y == nullptr) fail(kWhere, "{} is missing (null)", args.a == nullptr ? "a" : "y");
  const profiler::Scope profiled(kWhere,
                                 {0, (args.base == nullptr ? 8.0 : 12.0) * static_cast<double>(args.rows * args.cols)});
  dropout_add_kernel(device, args);
}

}  // namespace etc::ops
