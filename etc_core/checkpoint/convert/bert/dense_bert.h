// BERT and RoBERTa as dense encoders, which compute what they compute, and a dense encoder as a BERT.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "etc_core/checkpoint/convert/bert/bert_config.h"
#include "etc_core/checkpoint/convert/dense/foreign_encoder.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/dense_config.h"

namespace etc::convert {

// The dense encoder of the same sizes as TensorFlow computes it (gelu by tanh): Post-LN, absolute positions, with running scores where BERT has them.
DenseConfig dense_config_for(const BertConfig& bert);

// A BERT or RoBERTa for read_foreign. Its parameters have the names of BERT's variables; kernels of PyTorch are
// transposed; RoBERTa's positions count from their first row that a token can have. Behind the encoder there are the
// pooler, and the masked-language-model and next-sentence heads. Gelu is the form that the source's library computes.
ForeignEncoder bert_encoder(const BertConfig& bert, BertKind kind, const TensorSource& source);

// Writes the model directory of a dense encoder as a BERT for PyTorch's libraries into a fresh or empty folder:
// model.safetensors under their names (kernels [out, in]), BERT's config.json, and the vocabulary that the model keeps.
// The names are those of BertModel, or with heads, which stand beside it, those of BertForPreTraining. What is no BERT's
// (other tasks' heads) is left out and said. Running scores are said in config.json, as RealFormer's own say them.
// Throws UsageError naming the fields in which the encoder is no BERT, Error on a damaged file. Returns lines for
// people. `written`: as export_model.
std::string write_bert(const std::filesystem::path& model, const std::filesystem::path& output,
                       const std::function<void(std::int64_t tensors)>& written = {});

}  // namespace etc::convert
