// BERT's and RoBERTa's weights as the starting point of an ETC model ("lifting", pretraining 3).
//
// If the window covers the input, no global token interferes and the relative terms are zero, the long side of ETC is a
// BERT without positions. The mapping of the weights is chosen so that this holds exactly.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "etc_core/checkpoint/convert/bert/bert_config.h"
#include "etc_core/checkpoint/convert/bert/vocabulary.h"
#include "etc_core/checkpoint/convert/report.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/parameters.h"

namespace etc::convert {

struct LiftOptions {
  BertKind kind = BertKind::bert;
  // Keep what lifting otherwise drops, so that the long side computes the same as the source: position tables, all rows
  // of the token types, the order of the vocabulary.
  bool exact = false;
  bool normal_relative_tables = false;    // initialised as usual (standard deviation 0.5); else zeros
  bool position_mean = false;             // add the mean position to every segment row (not with exact)
  bool keep_heads = true;                 // the masked-language-model head also becomes parameters
  bool allow_partial_vocabulary = false;  // fewer than 90 % of the target's pieces found in the source
  std::uint64_t seed = 1;                 // for initialised parameters
};

// Adds the encoder's parameters (and the kept head) to the empty set and fills them.
//   token table                    word embeddings, rows chosen by `vocabulary` (null: the same rows)
//   segment table                  row 0 of the token types in every row; exact: rows as they are, the rest row 0
//   long_, global_emb_layer_norm   the embeddings' LayerNorm
//   position tables                none; exact: the position table without RoBERTa's two unused rows, in both
//   queries, keys, values, output  of each attention type, from BERT's only one; also LayerNorms and feed-forward
//   relative tables                initialised
// Rules: hidden size, layers, heads and inner size must agree, else UsageError naming both. Every required variable of
//   BERT must exist with its shape, and every encoder variable must be used or have a known reason to be left out; else
//   Error listing all mismatches, before numbers are read. Weights must be finite. The report names every variable of
//   the source and every parameter.
ConversionReport lift_bert(const TensorSource& source, const BertConfig& bert, const EtcConfig& config,
                           const VocabularyMatch* vocabulary, const LiftOptions& options, ParameterSet& parameters);

// The variable of BERT that is copied unchanged into an encoder parameter ("…/l2g_key_projection/linear/kernel" →
// "bert/encoder/layer_3/attention/self/key/kernel"); empty for tables built from rows and for initialised parameters.
std::string lifted_from(std::string_view parameter);

}  // namespace etc::convert
