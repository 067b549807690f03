#include "etc_core/ops/vocabulary_softmax.h"

#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"

namespace etc::ops {

constinit KernelSlot<void(const VocabularySoftmax&)> vocabulary_softmax_kernel{"vocabulary_softmax"};

void vocabulary_softmax(Device device, const VocabularySoftmax& args) {
  constexpr const char* kWhere = "vocabulary_softmax";
  if (args.rows < 0 || args.vocabulary < 1) {
    fail(kWhere, "sizes: expected M >= 0 and V >= 1, got M={}, V={}", args.rows, args.vocabulary);
  }
  if (args.rows == 0) return;
  if (args.z == nullptr || args.labels == nullptr || args.losses == nullptr) {
    fail(kWhere, "{} missing (null)",
         args.z == nullptr        ? "z is"
         : args.labels == nullptr ? "labels are"
                                  : "losses are");
  }
  if (!(args.smoothing >= 0 && args.smoothing <= 1)) {
    fail(kWhere, "smoothing: expected 0 to 1, got {}", args.smoothing);
  }
  for (std::int64_t i = 0; i < args.rows; ++i) {
    if (args.labels[i] < 0 || args.labels[i] >= args.vocabulary) {
      fail(kWhere, "row {}: label: expected 0 to {}, got {}", i, args.vocabulary - 1, args.labels[i]);
    }
  }
  const double logits = static_cast<double>(args.rows) * static_cast<double>(args.vocabulary);
  const profiler::Scope profiled(kWhere, {0, (args.gradient ? 12.0 : 8.0) * logits});
  vocabulary_softmax_kernel(device, args);
}

}  // namespace etc::ops
