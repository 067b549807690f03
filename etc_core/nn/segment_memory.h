// Memory of a causal encoder: the inputs of each layer's attention in earlier segments of a text, which later segments
// attend to (Transformer-XL: Dai et al. 2019, section 3.2).
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

// Throws Error naming the member if the input has memory but the encoder is not causal or keeps no memory, if an
// example has more than memory_length rows of memory, or if offsets, layers or sizes do not match.
void check_memory(const EncoderInput& input, const DenseConfig& config);

// The memory of one pass, owned by the closures of the tape.
class SegmentMemory {
 public:
  // Null if the configuration keeps no memory. The input's memory must have been checked; it is moved to the encoder's
  // device.
  static std::shared_ptr<SegmentMemory> of(const EncoderInput& input, const DenseConfig& config, Device device);

  // Whether there is memory of earlier segments.
  bool seen() const { return !before_.states.empty(); }
  // [B+1]: keys of memory and segment, in that order, example by example.
  const std::vector<std::int64_t>& key_offsets() const { return key_offsets_; }
  // The memory of a layer, [M, H], as a variable that needs no gradient.
  Var states(std::int64_t layer) const { return Var(before_.states[static_cast<std::size_t>(layer)]); }
  // Joins columns of the memory's rows and of the segment's rows to columns of all keys, in the order of key_offsets.
  Columns join(Tape& tape, const Columns& memory, const Columns& segment) const;

  // Records the input of a layer's attention, x [T, H].
  void remember(std::int64_t layer, const Tensor& x);
  // The memory after this segment. Every layer must have been recorded.
  const LayerMemory& after() const { return after_; }

 private:
  LayerMemory before_, after_;
  std::vector<std::int64_t> key_offsets_;
  std::vector<std::int64_t> key_rows_;   // [keys]: rows of the stacked matrix [memory; segment]
  std::vector<std::int64_t> kept_rows_;  // rows of the same matrix that form the memory afterwards
};

}  // namespace etc
