#include "etc_core/nn/blocks/layer_stack.h"

#include <algorithm>
#include <utility>

#include "etc_core/base/interruption.h"

namespace etc {

namespace {

struct LayerRange {
  std::int64_t first = 0, end = 0;  // half-open
};

// The ranges of layers between kept inputs: all but the last are recomputed in backward.
std::vector<LayerRange> layer_ranges(std::int64_t layers, std::int64_t period) {
  const std::int64_t stride = period <= 0 ? layers : std::min(period, layers);
  std::vector<LayerRange> ranges;
  std::int64_t first = 0;
  for (std::int64_t end = layers % stride == 0 ? stride : layers % stride; end <= layers; end += stride) {
    ranges.push_back({first, end});
    first = end;
  }
  return ranges;
}

}  // namespace

LayerStates run_layers(Tape& tape, LayerStates x, const LayerStack& stack) {
  const auto forward = [&stack](Tape& on, LayerStates y, LayerRange range) {
    for (std::int64_t i = range.first; i < range.end; ++i) {
      check_interruption();
      y = stack.layer(on, i, std::move(y), Pass::forward);
      if (stack.after) stack.after(i, y);
    }
    return y;
  };
  for (const LayerRange range : layer_ranges(stack.layers, tape.recording() ? stack.period : 0)) {
    if (range.end == stack.layers) return forward(tape, std::move(x), range);
    x = checkpoint(
        tape, x, [&](Tape& on, const LayerStates& inputs) { return forward(on, inputs, range); },
        [layer = stack.layer, range](Tape& on, const LayerStates& inputs) {
          LayerStates y = inputs;
          for (std::int64_t i = range.first; i < range.end; ++i) y = layer(on, i, std::move(y), Pass::recompute);
          return y;
        });
  }
  return x;
}

}  // namespace etc
