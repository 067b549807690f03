// The configuration of a BERT or RoBERTa checkpoint (bert_config.json, config.json), and the ETC configuration that
// takes its weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/base/json.h"
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
  std::string hidden_act = "gelu";
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double initializer_range = 0.02;
  std::int64_t max_position_embeddings = 512;
  std::int64_t type_vocab_size = 16;
  double layer_norm_eps = 1e-12;
  bool use_residual_attention = false;  // RealFormer: also where only use_running_mean is said (etc-core 9.1)
  bool use_running_mean = false;
  std::int64_t pad_token_id = 1;         // read of a RoBERTa alone
  std::int64_t block_sparse_beyond = 0;  // BigBird reads longer texts with a pattern of blocks; 0: any text as a whole

  // The first row of the position table that a token can have: RoBERTa counts from its padding id on.
  std::int64_t first_position(BertKind kind) const { return kind == BertKind::roberta ? pad_token_id + 1 : 0; }
};

// Other keys are ignored: these files are full of them. Throws UsageError naming key and what is wrong with it, also
// where it makes the model compute something else (is_decoder, rescale_embeddings, …). Which model it is: model_type.h.
BertConfig bert_config_from_json(const Json& json, const std::string& where, BertKind kind = BertKind::bert);

// Sets what a BERT says and any encoder has: vocabulary, sizes, activation, dropouts, running scores.
void take_common_fields(const BertConfig& bert, EncoderConfig& config);

// An ETC configuration of the same sizes. What BERT does not decide (radius, distances, sharing) is that of the preset
// with its hidden size and layers, else of "base".
//   exact   absolute positions, and a window that covers every input BERT can read
EtcConfig etc_config_for(const BertConfig& bert, BertKind kind, bool exact);

// Whether the source's "gelu" is the erf form: that of PyTorch's library, whose names have dots. TensorFlow's is tanh's.
bool has_erf_gelu(const TensorSource& source, const BertConfig& bert);

// What the source computes otherwise than a model here with its weights, for reports.
std::vector<std::string> differences(const TensorSource& source, const BertConfig& bert);

// Of a BigBird: up to which length it computes what a BERT does, for reports; "" where it always does.
std::string block_sparse_note(const BertConfig& bert);

// The activation's name in a configuration of ours. Throws UsageError when there is none.
std::string etc_activation(const std::string& bert_activation, const std::string& where);

}  // namespace etc::convert
