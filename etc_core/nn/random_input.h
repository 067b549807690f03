// Random inputs for measurements.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/encoder_input.h"
#include "sparse/tile_sample.h"

namespace etc {

// One example of L random tokens in blocks of tokens_per_global, each with its global token if the encoder has global
// tokens. Equal arguments give equal inputs.
EncoderInput random_input(const EncoderConfig& model, std::int64_t length, std::int64_t tokens_per_global);

// The same for a batch with an example for each length; without ordinals of examples.
EncoderInput random_batch(const EncoderConfig& model, const std::vector<std::int64_t>& lengths,
                          std::int64_t tokens_per_global);

// An input like that of random_input for counting the memory of a call (count_memory.h), without allocating its labels,
// whatever its length. Created and used within count_memory().
class CountedInput {
 public:
  CountedInput(const EncoderConfig& model, std::int64_t length, std::int64_t tokens_per_global);
  const EncoderInput& input() const { return input_; }

 private:
  std::unique_ptr<const sparse::TileSample> sample_;  // null: the input is short and its labels have values
  EncoderInput input_;
};

}  // namespace etc
