// Running a lifted model as the BERT it came from, and that BERT in double, written from the formulas.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "etc_core/checkpoint/convert/bert/bert_config.h"
#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"
#include "tests/golden/bert_golden.h"
#include "tests/reference/dense_realformer.h"

namespace etc::test {

// The same input as an ETC batch without global tokens, whose long tokens are within the configuration's radius.
EncoderInput etc_input(const BertInput& input, const EtcConfig& config);

// Numbers of a variable by its TensorFlow name, kernels [in, out].
using ReadVariable = std::function<std::vector<double>(const std::string& name)>;

// Final hidden states of one sequence without padding.
//   exact_gelu   the erf form of gelu, which PyTorch's BERT computes, instead of the tanh form
reference::realformer::Matrix reference_bert(const convert::BertConfig& config, const ReadVariable& read,
                                             const std::vector<std::int32_t>& ids,
                                             const std::vector<std::int32_t>& types, bool exact_gelu);

}  // namespace etc::test
