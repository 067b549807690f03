#include "etc_core/checkpoint/convert/bert/bert_config.h"

#include <algorithm>
#include <utility>

#include "etc_core/base/ascii.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/model_sizes.h"

namespace etc::convert {

namespace {

struct Reader {
  const Json& json;
  const std::string& where;

  void size(const char* key, std::int64_t& field) const {
    const auto found = json.find(key);
    if (found == json.end()) return;
    if (!found->is_number_integer() || *found < 1 || *found > kMaxModelSize) {
      fail_usage(where, "{}: expected 1 … {}, got {}", key, kMaxModelSize, json_line(*found));
    }
    field = found->get<std::int64_t>();
  }
  void number(const char* key, double& field) const {
    const auto found = json.find(key);
    if (found == json.end()) return;
    if (!found->is_number()) fail_usage(where, "{}: expected a number, got {}", key, json_line(*found));
    field = found->get<double>();
  }
  bool flag(const char* key, bool& field) const {
    const auto found = json.find(key);
    if (found == json.end()) return false;
    if (!found->is_boolean()) fail_usage(where, "{}: expected true or false, got {}", key, json_line(*found));
    field = found->get<bool>();
    return true;
  }
  // Refuses a switch that changes the model's computation.
  void refuse(const char* key, const char* why) const {
    bool on = false;
    flag(key, on);
    if (on) fail_usage(where, "{}: expected false, got true ({})", key, why);
  }
  void text(const char* key, std::string& field) const {
    const auto found = json.find(key);
    if (found == json.end()) return;
    if (!found->is_string()) fail_usage(where, "{}: expected a string, got {}", key, json_line(*found));
    field = found->get<std::string>();
  }
  // Names in any case; null is the identity, as is "" (etc-core 6.3).
  void activation(const char* key, std::string& field) const {
    const auto found = json.find(key);
    if (found != json.end() && found->is_null()) {
      field.clear();
    } else {
      text(key, field);
      field = lower_ascii(std::move(field));
    }
  }
};

// Throws UsageError when a key selects a computation that no BERT has.
void refuse_others(const Reader& reader, const BertConfig& config) {
  reader.refuse("is_decoder", "tokens of a decoder do not see those behind them");
  reader.refuse("add_cross_attention", "attention to the states of another encoder has no place here");
  reader.refuse("rescale_embeddings", "embeddings times the root of hidden_size have no place here");
  std::int64_t width = config.hidden_size;
  reader.size("embedding_size", width);
  if (width != config.hidden_size) {
    fail_usage(reader.where, "embedding_size: expected hidden_size, {}, got {} (its projection has no place here)",
               config.hidden_size, width);
  }
  std::string positions = "absolute";
  reader.text("position_embedding_type", positions);
  if (positions != "absolute") {
    fail_usage(reader.where, "position_embedding_type: expected absolute, got {} (its scores have no place here)",
               positions);
  }
}

void read_padding(const Reader& reader, BertConfig& config) {
  const auto found = reader.json.find("pad_token_id");
  if (found != reader.json.end()) {
    if (!found->is_number_integer() || *found < 0 || *found > kMaxModelSize) {
      fail_usage(reader.where, "pad_token_id: expected 0 … {}, got {} (positions count from the number behind it)",
                 kMaxModelSize, json_line(*found));
    }
    config.pad_token_id = found->get<std::int64_t>();
  }
  const std::int64_t first = config.first_position(BertKind::roberta);
  if (config.max_position_embeddings <= first) {
    fail_usage(reader.where, "max_position_embeddings: expected more than pad_token_id + 1 = {}, got {}", first,
               config.max_position_embeddings);
  }
}

// For a BigBird: the number of tokens up to which its library computes the same as a BERT.
std::int64_t block_sparse_beyond(const Reader& reader) {
  const auto type = reader.json.find("model_type");
  std::string attention = type != reader.json.end() && *type == "big_bird" ? "block_sparse" : "original_full";
  reader.text("attention_type", attention);
  std::int64_t random = 3, size = 64;
  reader.size("num_random_blocks", random);
  reader.size("block_size", size);
  return attention == "block_sparse" ? (5 + 2 * random) * size : 0;
}

}  // namespace

BertConfig bert_config_from_json(const Json& json, const std::string& where, BertKind kind) {
  if (!json.is_object()) fail_usage(where, "expected an object with the sizes of the model");
  if (!json.contains("vocab_size"))
    fail_usage(where, "no vocab_size: not the configuration of a BERT or RoBERTa model");
  BertConfig config;
  const Reader reader{json, where};
  reader.size("vocab_size", config.vocab_size);
  reader.size("hidden_size", config.hidden_size);
  reader.size("num_hidden_layers", config.num_hidden_layers);
  reader.size("num_attention_heads", config.num_attention_heads);
  reader.size("intermediate_size", config.intermediate_size);
  reader.size("max_position_embeddings", config.max_position_embeddings);
  reader.size("type_vocab_size", config.type_vocab_size);
  reader.activation("hidden_act", config.hidden_act);
  reader.number("hidden_dropout_prob", config.hidden_dropout_prob);
  reader.number("attention_probs_dropout_prob", config.attention_probs_dropout_prob);
  reader.number("initializer_range", config.initializer_range);
  reader.number("layer_norm_eps", config.layer_norm_eps);
  const bool says_mean = reader.flag("use_running_mean", config.use_running_mean);
  const bool says_residual = reader.flag("use_residual_attention", config.use_residual_attention);
  if (!says_residual) config.use_residual_attention = says_mean;
  config.says_residual = says_residual || says_mean;
  refuse_others(reader, config);
  if (kind == BertKind::roberta) read_padding(reader, config);
  config.block_sparse_beyond = block_sparse_beyond(reader);
  return config;
}

void take_common_fields(const BertConfig& bert, EncoderConfig& config) {
  config.vocab_size = bert.vocab_size;
  config.hidden_size = bert.hidden_size;
  config.num_hidden_layers = bert.num_hidden_layers;
  config.num_attention_heads = bert.num_attention_heads;
  config.intermediate_size = bert.intermediate_size;
  config.hidden_act = etc_activation(bert.hidden_act, "hidden_act");
  config.hidden_dropout_prob = bert.hidden_dropout_prob;
  config.attention_probs_dropout_prob = bert.attention_probs_dropout_prob;
  config.initializer_range = bert.initializer_range;
  config.use_residual_attention = bert.use_residual_attention;
  config.use_running_mean = bert.use_running_mean;
}

EtcConfig etc_config_for(const BertConfig& bert, BertKind kind, bool exact) {
  EtcConfig config = etc_config_preset("base");
  for (const char* name : {"large", "small"}) {
    const EtcConfig preset = etc_config_preset(name);
    const bool same_size = preset.hidden_size == bert.hidden_size && preset.num_hidden_layers == bert.num_hidden_layers;
    if (same_size) config = preset;
  }
  take_common_fields(bert, config);
  if (exact) {
    config.segment_vocab_size = std::max(config.segment_vocab_size, bert.type_vocab_size);
    config.max_absolute_position_embeddings = bert.max_position_embeddings - bert.first_position(kind);
    config.local_radius = std::max<std::int64_t>(1, config.max_absolute_position_embeddings - 1);
  }
  return config;
}

bool has_erf_gelu(const TensorSource& source, const BertConfig& bert) {
  const bool dotted = !source.tensors().empty() && source.tensors().begin()->first.find('/') == std::string::npos;
  return dotted && (bert.hidden_act == "gelu" || bert.hidden_act == "gelu_python");
}

std::vector<std::string> differences(const TensorSource& source, const BertConfig& bert) {
  std::vector<std::string> notes;
  if (has_erf_gelu(source, bert)) {
    notes.push_back("activation: gelu means the erf form there, ETC computes the tanh form (at most 4.7e-4 apart)");
  }
  if (bert.layer_norm_eps != 1e-12) {
    notes.push_back(fmt::format("layer_norm_eps is {} there, ETC has 1e-12", bert.layer_norm_eps));
  }
  return notes;
}

std::string plain_scores_note(const BertConfig& bert) {
  if (bert.says_residual) return "";
  return "scores are not residual: the configuration has neither use_residual_attention nor use_running_mean (a "
         "RealFormer needs --residual-attention sum or mean)";
}

std::string block_sparse_note(const BertConfig& bert) {
  if (bert.block_sparse_beyond == 0 || bert.block_sparse_beyond >= bert.max_position_embeddings) return "";
  return fmt::format(
      "attention_type is block_sparse there: the states are the same for texts of up to {} tokens, longer ones are "
      "read "
      "with full attention here",
      bert.block_sparse_beyond);
}

std::string etc_activation(const std::string& bert_activation, const std::string& where) {
  for (const char* gelu : {"gelu", "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh"}) {
    if (bert_activation == gelu) return "gelu";
  }
  for (const char* same : {"relu", "tanh", "linear"}) {
    if (bert_activation == same) return same;
  }
  if (bert_activation.empty()) return "linear";
  fail_usage(where, "activation {}: expected gelu, relu, tanh or linear", bert_activation);
}

}  // namespace etc::convert
