// Running a lifted model as the BERT it came from, and that BERT in double, written from the formulas.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "etc_core/checkpoint/convert/bert/bert_config.h"
#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"
#include "tests/reference/dense_realformer.h"

namespace etc::test {

// B sequences of the same length, as BERT takes them.
struct BertInput {
  std::int64_t batch = 0, length = 0;
  std::vector<std::int32_t> ids, types;  // [B, length]
  std::vector<std::int32_t> mask;        // [B, length]; keys where it is 0 are seen by no query
};

// The same as the long side of an ETC batch without global tokens: BERT's key-side mask (padding queries see the valid
// keys) as labels. Token types become segment ids.
EncoderInput etc_input(const BertInput& input, const EtcConfig& config);

// Numbers of a variable by its TensorFlow name, kernels [in, out].
using ReadVariable = std::function<std::vector<double>(const std::string& name)>;

// Final hidden states of one sequence without padding.
//   exact_gelu   the erf form of gelu, which PyTorch's BERT computes, instead of the tanh form
reference::realformer::Matrix reference_bert(const convert::BertConfig& config, const ReadVariable& read,
                                             const std::vector<std::int32_t>& ids,
                                             const std::vector<std::int32_t>& types, bool exact_gelu);

}  // namespace etc::test
