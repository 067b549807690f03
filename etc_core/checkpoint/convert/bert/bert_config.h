// The configuration of a BERT or RoBERTa checkpoint (bert_config.json, config.json), and the ETC configuration for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/etc_config.h"

namespace etc::convert {

enum class BertKind { bert, roberta };

struct BertConfig {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";  // in small letters; empty: the identity
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double initializer_range = 0.02;
  std::int64_t max_position_embeddings = 512;
  std::int64_t type_vocab_size = 16;
  double layer_norm_eps = 1e-12;
  bool use_residual_attention = false;  // RealFormer: also if only use_running_mean is given (etc-core 9.1)
  bool use_running_mean = false;
  bool says_residual = false;            // whether either key is there
  std::int64_t pad_token_id = 1;         // read only for a RoBERTa
  std::int64_t block_sparse_beyond = 0;  // BigBird: longer texts get block-sparse attention; 0: always full attention

  // The first row of the position table that a token can have: RoBERTa counts from its padding id + 1.
  std::int64_t first_position(BertKind kind) const { return kind == BertKind::roberta ? pad_token_id + 1 : 0; }
};

// Other keys are ignored, because these files have many. Throws UsageError naming the key and the problem, also for
// keys that change the computation (is_decoder, rescale_embeddings, …). model_type.h checks the type of the model.
BertConfig bert_config_from_json(const Json& json, const std::string& where, BertKind kind = BertKind::bert);

// Copies the fields that every encoder has: vocabulary, sizes, activation, dropouts, running scores.
void take_common_fields(const BertConfig& bert, EncoderConfig& config);

// An ETC configuration of the same sizes. Fields without a counterpart in BERT (radius, distances, sharing) come from
// the preset with the same hidden size and layers, else from "base".
//   exact   absolute positions, and a window that covers every input BERT can read
EtcConfig etc_config_for(const BertConfig& bert, BertKind kind, bool exact);

// Whether the source's "gelu" is the erf form, as in PyTorch's library, whose names have dots. TensorFlow uses tanh.
bool has_erf_gelu(const TensorSource& source, const BertConfig& bert);

// Differences between the source's computation and that of a converted model with its weights, for reports.
std::vector<std::string> differences(const TensorSource& source, const BertConfig& bert);

// That scores are taken as not residual because no key says whether they are, for reports; "" if one does.
std::string plain_scores_note(const BertConfig& bert);

// For a BigBird: the length up to which it computes the same as a BERT, for reports; "" if it always does.
std::string block_sparse_note(const BertConfig& bert);

// The activation's name in this program's configuration. Throws UsageError when there is none.
std::string etc_activation(const std::string& bert_activation, const std::string& where);

}  // namespace etc::convert
