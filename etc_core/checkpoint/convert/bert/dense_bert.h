// BERT's weights as a dense encoder, which computes what BERT computes, and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "etc_core/checkpoint/convert/bert/bert_config.h"
#include "etc_core/checkpoint/convert/report.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/parameters.h"

namespace etc::convert {

// The dense encoder of the same sizes: Post-LN, absolute positions, with running scores where BERT has them.
DenseConfig dense_config_for(const BertConfig& bert);

// Adds to the empty set the encoder's parameters, which have the names of BERT's variables, and those behind the
// encoder that the source has: the pooler, and with keep_heads the masked-language-model and next-sentence heads. Fills
// them; kernels of PyTorch are transposed.
// Rules: every variable the encoder needs is there with its shape, or Error listing all that are not, before numbers
//   are read; weights are finite. The report names every variable of the source.
ConversionReport read_dense_bert(const TensorSource& source, const BertConfig& bert, bool keep_heads,
                                 ParameterSet& parameters);

// Writes the model directory of a dense encoder as a BERT for PyTorch's libraries into a fresh or empty folder:
// model.safetensors under their names (kernels [out, in]), BERT's config.json, and vocab.txt where the model keeps it.
// The names are those of BertModel, or with heads, which stand beside it, those of BertForPreTraining. What is no BERT's
// (other tasks' heads) is left out and said. Running scores are said in config.json, as RealFormer's own say them.
// Throws UsageError naming the fields in which the encoder is no BERT, Error on a damaged file. Returns lines for
// people. `written`: as export_model.
std::string write_bert(const std::filesystem::path& model, const std::filesystem::path& output,
                       const std::function<void(std::int64_t tensors)>& written = {});

}  // namespace etc::convert
