// Memory of a causal encoder: what the attention of each layer read in earlier segments of a text, seen again by later
// ones (Transformer-XL: Dai et al. 2019, section 3.2).
//
//   memory of a layer    the last `memory_length` inputs of its attention, without gradient; none before the first segment
//   keys and values      of [memory ; segment], queries of the segment alone
//   memory afterwards    the last `memory_length` rows of [memory ; inputs], layer by layer
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/encoder_input.h"

namespace etc {

// Throws Error naming the member when the input has memory and the encoder is not causal or keeps none, when an example
// has more than memory_length rows of it, or when offsets, layers or sizes do not fit.
void check_memory(const EncoderInput& input, const DenseConfig& config);

// The memory of one pass. Closures hold it.
class SegmentMemory {
 public:
  // Null where the configuration keeps no memory. The input's has been checked; it is moved to where the encoder is.
  static std::shared_ptr<SegmentMemory> of(const EncoderInput& input, const DenseConfig& config, Device device);

  // Whether there is any to see.
  bool seen() const { return !before_.states.empty(); }
  // [B+1]: keys of memory and segment, in that order, example by example.
  const std::vector<std::int64_t>& key_offsets() const { return key_offsets_; }
  // What a layer's attention read earlier, [M, H]: a variable that needs no gradient.
  Var states(std::int64_t layer) const { return Var(before_.states[static_cast<std::size_t>(layer)]); }
  // Columns of the memory's rows and of the segment's as columns of all keys, in the order of key_offsets.
  Columns join(Tape& tape, const Columns& memory, const Columns& segment) const;

  // Notes the input of a layer's attention, x [T, H].
  void remember(std::int64_t layer, const Tensor& x);
  // Of the segment and what was before it; every layer has been noted.
  const LayerMemory& after() const { return after_; }

 private:
  LayerMemory before_, after_;
  std::vector<std::int64_t> key_offsets_;
  std::vector<std::int64_t> key_rows_;   // [keys]: rows of the memory above the segment's
  std::vector<std::int64_t> kept_rows_;  // of the memory afterwards, likewise
};

}  // namespace etc
