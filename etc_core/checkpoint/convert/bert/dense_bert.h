// Converts BERT and RoBERTa to dense encoders with the same results, and a dense encoder to a BERT.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "etc_core/checkpoint/convert/bert/bert_config.h"
#include "etc_core/checkpoint/convert/dense/foreign_encoder.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/dense_config.h"

namespace etc::convert {

// The dense encoder of the same sizes as TensorFlow computes it (gelu by tanh): Post-LN, absolute positions, with
// running scores where BERT has them.
DenseConfig dense_config_for(const BertConfig& bert);

// A BERT or RoBERTa for read_foreign. Its parameters have the names of BERT's variables; PyTorch's kernels are
// transposed; RoBERTa's position table starts with the first row that a token can have. The encoder is followed by the
// pooler, and the masked-language-model and next-sentence heads. Gelu is the form that the source's library computes.
ForeignEncoder bert_encoder(const BertConfig& bert, BertKind kind, const TensorSource& source);

// Writes the model directory of a dense encoder as a BERT for PyTorch's libraries into a new or empty folder:
// model.safetensors with PyTorch's names (kernels [out, in]), BERT's config.json, and the model's vocabulary. The names
// are those of BertModel, or of BertForPreTraining if there are heads. Tensors that do not belong to a BERT (other
// tasks' heads) are left out and reported. Running scores are given in config.json in the same way as by RealFormer.
// Throws UsageError naming the fields in which the encoder differs from a BERT, Error on a damaged file. Returns
// message lines. `written`: as for export_model.
std::string write_bert(const std::filesystem::path& model, const std::filesystem::path& output,
                       const std::function<void(std::int64_t tensors)>& written = {});

}  // namespace etc::convert
