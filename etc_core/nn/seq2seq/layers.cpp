#include "etc_core/nn/seq2seq/layers.h"

#include <string>

#include "etc_core/ops/activation.h"

namespace etc {

namespace {

using Kernel = Seq2SeqConfig::Kernel;
using Norm = Seq2SeqConfig::Norm;

constexpr const char* kSelf = "self_attention";

const char* name_of(Stack stack) {
  return stack == Stack::encoder ? "encoder" : "decoder";
}

NormPlacement norm_placement(Norm norm) {
  if (norm == Norm::pre_ln) return NormPlacement::before;
  return norm == Norm::rezero ? NormPlacement::none : NormPlacement::after;
}

// Declares the parameters of one layer.
struct LayerMaker {
  ParameterSet& parameters;
  const Seq2SeqConfig& config;
  bool decoder;
  std::string layer;   // "seq2seq/encoder/layer_0/"
  bool first = false;  // of its stack
  Parameter* alpha = nullptr;

  Dense::Part dense(const std::string& name, Kernel kernel, std::int64_t in, std::int64_t out) const {
    return add_dense(parameters, layer + name, in, out, config.kernel_init(kernel, decoder, in, out));
  }

  ResidualPlacement residual(const std::string& sublayer) const {
    ResidualPlacement placement;
    placement.norm_at = norm_placement(config.norm);
    placement.alpha = alpha;
    if (placement.norm_at != NormPlacement::none) {
      placement.norm =
          add_layer_norm(parameters, layer + sublayer + "/LayerNorm", config.hidden_size, config.norm_statistics());
    }
    if (config.norm == Norm::admin || (config.norm == Norm::admin_folded && first && sublayer == kSelf)) {
      placement.omega = &parameters.add(layer + sublayer + "/admin_omega", {config.hidden_size}, kOnes);
    }
    placement.skip = static_cast<float>(config.skip_factor(decoder));
    return placement;
  }

  Seq2SeqAttention attention(const std::string& sublayer, bool across) const {
    const std::int64_t hidden = config.hidden_size, width = config.attention_size();
    const std::string names = sublayer + "/";
    Seq2SeqAttention made;
    AttentionBlock& of_keys = across ? made.keys : made.queries;
    made.queries.projections.push_back(dense(names + "query", Kernel::query_or_key, hidden, width));
    of_keys.projections.push_back(dense(names + "key", Kernel::query_or_key, hidden, width));
    of_keys.projections.push_back(dense(names + "value", Kernel::value, hidden, width));
    made.queries.output = single(dense(names + "output", Kernel::output, width, hidden));
    made.residual = residual(sublayer);
    return made;
  }

  FeedForwardBlock feed_forward() const {
    const std::int64_t hidden = config.hidden_size, inner = config.intermediate_size;
    FeedForwardBlock made;
    made.inner = single(dense("feed_forward/inner", Kernel::feed_forward, hidden, inner));
    made.outer = single(dense("feed_forward/outer", Kernel::feed_forward, inner, hidden));
    made.activation = ops::activation_from_name(config.hidden_act);
    made.residual = residual("feed_forward");
    return made;
  }
};

Parameter& add_table(ParameterSet& parameters, const Seq2SeqConfig& config, Stack stack) {
  const std::string names = "seq2seq/embeddings/";
  const bool encoder = stack == Stack::encoder;
  const std::string name = names + (config.share_embeddings ? "tokens" : encoder ? "source" : "target");
  if (Parameter* shared = parameters.find(name)) return *shared;
  const std::int64_t rows = encoder ? config.vocab_size : config.target_vocabulary();
  return parameters.add(name, {rows, config.hidden_size}, config.table_init());
}

}  // namespace

std::vector<Dense> Seq2SeqAttention::dense_layers() const {
  std::vector<Dense> all = queries.dense_layers();
  if (across()) all.push_back(keys.all_projections());
  return all;
}

Seq2SeqStack add_seq2seq_stack(ParameterSet& parameters, const Seq2SeqConfig& config, Stack stack) {
  const bool decoder = stack == Stack::decoder;
  const std::string names = std::string("seq2seq/") + name_of(stack) + "/";
  Seq2SeqStack made;
  made.table = &add_table(parameters, config, stack);
  for (std::int64_t i = 0; i < (decoder ? config.num_decoder_layers : config.num_hidden_layers); ++i) {
    LayerMaker maker{parameters, config, decoder, names + "layer_" + std::to_string(i) + "/", i == 0};
    if (config.scales_branches()) maker.alpha = &parameters.add(maker.layer + "rezero_alpha", {1}, kZeros);
    Seq2SeqLayer& layer = made.layers.emplace_back();
    layer.attentions.push_back(maker.attention(kSelf, false));
    if (decoder) layer.attentions.push_back(maker.attention("cross_attention", true));
    layer.feed_forward = maker.feed_forward();
  }
  if (config.norm == Norm::pre_ln) {
    made.final_norm =
        add_layer_norm(parameters, names + "final/LayerNorm", config.hidden_size, config.norm_statistics());
  }
  return made;
}

}  // namespace etc
