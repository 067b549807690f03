// Writes a dense encoder as a BERT for other programs; see dense_bert.h.
#include <vector>

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/bert/bert_names.h"
#include "etc_core/checkpoint/convert/bert/dense_bert.h"
#include "etc_core/checkpoint/convert/export.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/replaceable.h"

namespace etc::convert {

namespace fs = std::filesystem;

namespace {

// The configuration of the encoder; throws unless the encoder is equivalent to a BERT.
DenseConfig bert_like(const fs::path& model) {
  const ModelConfig config = read_encoder_config(model);
  const auto* const dense = dynamic_cast<const DenseConfig*>(&*config);
  if (dense == nullptr) fail_usage(model.string(), "expected a dense encoder, got one of another kind: it is no BERT");
  std::vector<std::string> faults;
  const auto require = [&](bool as_in_bert, const char* field, const char* expected) {
    if (!as_in_bert)
      faults.push_back(fmt::format("{}: expected {}, got {}", field, expected, json_line(dense->to_json()[field])));
  };
  require(dense->norm == DenseConfig::Norm::post_ln, "norm", "post_ln");
  require(dense->order() == sandwich_order(dense->num_hidden_layers, 0), "sublayer_order", "none");
  require(dense->embedding_layer_norm, "embedding_layer_norm", "true");
  require(!dense->has_final_norm(), "final_layer_norm", "off");
  require(dense->embedding_width() == dense->hidden_size, "embedding_size", "none");
  require(dense->attention_size() == dense->hidden_size, "att_size_per_head", "none");
  require(dense->max_absolute_position_embeddings > 0, "max_absolute_position_embeddings", "at least 1");
  require(dense->absolute_positions == DenseConfig::AbsolutePositions::learned, "absolute_positions", "learned");
  require(!dense->has_relative_positions(), "relative_positions", "none");
  require(dense->local_radius == 0, "local_radius", "0");
  require(dense->normalization == DenseConfig::Normalization::layer_norm, "normalization", "layer_norm");
  require(!dense->causal, "causal", "false");
  require(dense->attention == DenseConfig::Attention::by_radius || dense->attention == DenseConfig::Attention::full,
          "attention", "full");
  if (!faults.empty()) fail_usage(model.string(), "the encoder is no BERT:\n  {}", fmt::join(faults, "\n  "));
  return *dense;
}

// In `transformers`, "gelu" is the erf form.
std::string hub_activation_name(const std::string& activation) {
  if (activation == "gelu") return "gelu_new";
  return activation == "gelu_erf" ? "gelu" : activation;
}

Json bert_json(const DenseConfig& config, bool with_heads) {
  Json json = {{"architectures", {with_heads ? "BertForPreTraining" : "BertModel"}},
               {"model_type", "bert"},
               {"vocab_size", config.vocab_size},
               {"hidden_size", config.hidden_size},
               {"num_hidden_layers", config.num_hidden_layers},
               {"num_attention_heads", config.num_attention_heads},
               {"intermediate_size", config.intermediate_size},
               {"hidden_act", hub_activation_name(config.hidden_act)},
               {"hidden_dropout_prob", config.hidden_dropout_prob},
               {"attention_probs_dropout_prob", config.attention_probs_dropout_prob},
               {"max_position_embeddings", config.max_absolute_position_embeddings},
               {"type_vocab_size", config.segment_vocab_size},
               {"initializer_range", config.initializer_range},
               {"layer_norm_eps", config.layer_norm_epsilon},
               {"position_embedding_type", "absolute"}};
  if (config.carries_scores()) {
    json["use_residual_attention"] = true;
    json["use_running_mean"] = config.use_running_mean;
  }
  return json;
}

// y [cols, rows] = xᵀ.   x [rows, cols]
Tensor transposed(const Tensor& x) {
  Tensor y = Tensor::empty({x.cols(), x.rows()}, Purpose::weights);
  transpose(x.data(), x.rows(), x.cols(), y.data());
  return y;
}

// The model's tensors: those to write, and names of those left out.
struct Tensors {
  TensorFileWriter writer;
  std::int64_t count = 0;
  bool heads = false;
  std::vector<std::string> left_out;
};

void add_all(const TensorFileReader& file, Tensors& tensors) {
  const auto is_head = [](std::string_view name) { return name.starts_with("cls/") && !hub_name(name).name.empty(); };
  for (const auto& [name, entry] : file.entries()) tensors.heads = tensors.heads || is_head(name);
  for (const auto& [name, entry] : file.entries()) {
    const BertName hub = hub_name(name);
    if (hub.name.empty()) {
      tensors.left_out.push_back(name);
      continue;
    }
    const Tensor values = file.read_tensor(name, Purpose::weights);
    const std::string prefix = tensors.heads && !is_head(name) ? "bert." : "";
    tensors.writer.add(prefix + hub.name, hub.transposed ? transposed(values) : values);
    ++tensors.count;
  }
}

}  // namespace

std::string write_bert(const fs::path& model, const fs::path& output,
                       const std::function<void(std::int64_t)>& written) {
  const DenseConfig config = bert_like(model);
  const TensorFileReader weights(model / "model.safetensors");
  AtomicFolder update(output, OldFiles::drop);
  Tensors tensors;
  add_all(weights, tensors);
  tensors.writer.set_metadata("format", "pt");
  tensors.writer.set_metadata(kWriterKey, kBertWriter);
  tensors.writer.write(update.path() / "model.safetensors", written);
  write_file_atomically(update.path() / "config.json", json_text(bert_json(config, tensors.heads)));
  std::string text = fmt::format("{}: {} tensors; config.json", (output / "model.safetensors").string(), tensors.count);
  text += copy_vocabulary(model, update.path());
  if (!tensors.left_out.empty()) {
    text += fmt::format("\nleft out, since they are no BERT's: {}", fmt::join(tensors.left_out, ", "));
  }
  if (config.carries_scores()) {
    text +=
        "\nthe model carries attention scores (use_residual_attention): `transformers` loads it, but computes it "
        "without them";
  }
  update.commit();
  return text;
}

}  // namespace etc::convert
