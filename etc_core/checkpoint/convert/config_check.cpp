#include "etc_core/checkpoint/convert/config_check.h"

#include <fmt/format.h>

#include <charconv>

namespace etc::convert {

namespace {

const std::string kModel = "etc_document_bert/";
const std::string kLayers = kModel + "global_local_transformer_layers/";
const std::string kBlock = "fused_att_layer_";
const std::string kFused = kLayers + kBlock + "0/fused_global_local_att/";

class Comparison {
 public:
  explicit Comparison(const SourceTensors& variables) : variables_(variables) {}
  std::vector<std::string> take() { return std::move(sentences_); }

  // A field that is a size of a variable.
  void size(const char* field, std::int64_t configured, const std::string& variable, std::size_t axis) {
    if (const auto stored = size_of(variable, axis)) compare(field, configured, *stored, variable);
  }
  // A field that is true if the variable exists or, with shows = false, if it does not.
  void flag(const char* field, bool configured, const std::string& variable, bool shows) {
    const bool stored = variables_.count(variable) != 0 ? shows : !shows;
    compare(field, configured, stored, variable);
  }
  template <typename T>
  void compare(const char* field, const T& configured, const T& stored, const std::string& variable) {
    if (configured == stored) return;
    const auto found = variables_.find(variable);
    const std::string evidence = found == variables_.end() ? fmt::format("has no {}", variable)
                                                           : fmt::format("has {} {}", variable, found->second.text());
    sentences_.push_back(
        fmt::format("{}: the configuration says {}, the checkpoint {}: it {}", field, configured, stored, evidence));
  }
  std::optional<std::int64_t> size_of(const std::string& variable, std::size_t axis) const {
    const auto found = variables_.find(variable);
    if (found == variables_.end() || axis >= found->second.shape.size()) return std::nullopt;
    return found->second.shape[axis];
  }

 private:
  const SourceTensors& variables_;
  std::vector<std::string> sentences_;
};

// One more than the highest layer a variable belongs to, and a variable that shows it.
std::pair<std::int64_t, std::string> layer_count(const SourceTensors& variables) {
  std::pair<std::int64_t, std::string> result{0, kLayers + kBlock + "0/layer_norm_0/gamma"};
  const std::string prefix = kLayers + kBlock;
  for (auto at = variables.lower_bound(prefix); at != variables.end() && at->first.starts_with(prefix); ++at) {
    std::int64_t index = 0;
    const char* first = at->first.data() + prefix.size();
    const auto parsed = std::from_chars(first, at->first.data() + at->first.size(), index);
    if (parsed.ec == std::errc() && index >= result.first && index < std::int64_t{1} << 30) {
      result = {index + 1, at->first};
    }
  }
  return result;
}

}  // namespace

std::string model_name(std::string_view variable) {
  constexpr std::string_view kPositions = "etc_document_bert/position_emb_lookup_";
  if (variable.starts_with(kPositions)) variable.remove_prefix(kModel.size());
  return std::string(variable);
}

std::vector<std::string> contradictions(const EtcConfig& config, const SourceTensors& variables) {
  Comparison comparison(variables);
  const std::string tokens = kModel + "token_emb_lookup/embedding_table";
  comparison.size("vocab_size", config.vocab_size, tokens, 0);
  comparison.size("embedding_size", config.embedding_width(), tokens, 1);
  comparison.size("segment_vocab_size", config.segment_vocab_size, kModel + "segment_emb_lookup/embedding_table", 0);
  comparison.size("hidden_size", config.hidden_size, kModel + "long_emb_layer_norm/gamma", 0);
  const std::string positions = "position_emb_lookup_long/embedding_table";
  comparison.compare("max_absolute_position_embeddings", config.max_absolute_position_embeddings,
                     comparison.size_of(positions, 0).value_or(0), positions);
  const auto [layers, last] = layer_count(variables);
  comparison.compare("num_hidden_layers", config.num_hidden_layers, layers, last);

  comparison.flag("share_feed_forward_params", config.share_feed_forward_params,
                  kLayers + "long_feed_forward_layer_0/layer_norm/gamma", false);
  const std::string inner = config.share_feed_forward_params ? "" : "long_";
  comparison.size("intermediate_size", config.intermediate_size,
                  kLayers + inner + "feed_forward_layer_0/dense_layers/layer_0/kernel", 1);
  const std::string global_query = kFused + "global_query_projection/linear/kernel";
  comparison.flag("share_qkv_projections", config.share_qkv_projections, global_query, false);
  if (variables.count(global_query) != 0) {  // with everything shared the flag below is ignored (etc-core 2.1)
    comparison.flag("share_kv_projections", config.share_kv_projections, kFused + "l2g_key_projection/linear/kernel",
                    false);
  }
  comparison.flag("share_att_output_projection", config.share_att_output_projection,
                  kFused + "global_output_projection/kernel", false);

  const std::string relative = kFused + "long_qkv_attention/qkv_relative_attention/relative_emb_table";
  const auto text = [](std::optional<std::int64_t> size) { return size ? std::to_string(*size) : std::string("null"); };
  comparison.compare("relative_vocab_size", text(config.relative_vocab_size), text(comparison.size_of(relative, 0)),
                     relative);
  comparison.size("num_attention_heads", config.num_attention_heads, relative, 1);
  comparison.size("att_size_per_head", config.head_size(), relative, 2);
  comparison.size("num_attention_heads * att_size_per_head", config.attention_size(),
                  kFused + "long_query_projection/linear/kernel", 1);
  return comparison.take();
}

}  // namespace etc::convert
