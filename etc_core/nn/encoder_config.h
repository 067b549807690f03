// What the configuration of every encoder has, whatever its kind, and what tasks and tools may ask of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "sparse/labels/builders.h"

namespace etc {

class Encoder;
class Fields;  // base/fields.h
class ParameterSet;

// Whether attention between long and global tokens is as the structure says, or cut to what the read-out needs (an
// ablation): no long token sees a global one, a global token sees itself alone and the long tokens that belong to it.
// So nothing travels farther than the window in a layer.
enum class GlobalAttention { full, read_out };
constexpr GlobalAttention global_attention(bool full) {  // as configuration files have it
  return full ? GlobalAttention::full : GlobalAttention::read_out;
}

struct EncoderConfig {
  std::int64_t vocab_size = 0;  // V; required
  std::int64_t segment_vocab_size = 16;
  std::optional<std::int64_t> embedding_size;  // none: hidden_size
  std::int64_t hidden_size = 768;              // H
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;              // N
  std::optional<std::int64_t> att_size_per_head;      // none: hidden_size / num_attention_heads
  std::int64_t max_absolute_position_embeddings = 0;  // 0: none
  std::int64_t intermediate_size = 3072;              // F
  std::string hidden_act = "gelu";
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double initializer_range = 0.02;
  std::int64_t grad_checkpointing_period = 0;
  bool use_residual_attention = false;
  bool use_running_mean = false;
  std::vector<std::string> residual_attention_types;  // of attention_types(): those that carry scores

  virtual ~EncoderConfig() = default;

  std::int64_t head_size() const;       // D
  std::int64_t attention_size() const;  // A = N·D
  std::int64_t embedding_width() const;
  bool carries_scores() const { return use_residual_attention && !residual_attention_types.empty(); }

  // The names of the attention types, of which residual_attention_types names some.
  virtual const std::vector<std::string>& attention_types() const = 0;

  // Throws UsageError "config: …" on impossible combinations, each naming field, value and limit.
  virtual void validate() const = 0;

  // Keys given another value than usual that nothing reads beside the other ones: no error, since runs over several
  // methods share the rest of their configuration.
  virtual std::vector<std::string> unread_keys() const { return {}; }

  virtual const Fields& fields() const = 0;  // every field with its help and its range
  virtual Json to_json() const = 0;          // all of them, sorted
  virtual std::unique_ptr<EncoderConfig> clone() const = 0;

  // Leaves at most so many layers (of each stack), for measurements of a slice of the model; `layers` at least 1.
  virtual void keep_layers(std::int64_t layers);

  // An encoder of this configuration, whose parameters are added to the set. Validates.
  virtual std::unique_ptr<Encoder> make_encoder(ParameterSet& parameters) const = 0;

  // Whether inputs and states have global tokens. Those that tasks have are left out where there are none.
  virtual bool has_global_tokens() const = 0;

  // How labels follow from the structure of an example: radius, distances, hard masks. None: it reads no labels.
  virtual std::optional<sparse::LabelOptions> label_options() const = 0;

  // Labels of a batch from the structures of its examples; none where the encoder reads none.
  sparse::AttentionLabels labels(std::vector<sparse::AttentionStructure> structures,
                                 GlobalAttention global = GlobalAttention::full) const;

 protected:
  EncoderConfig() = default;
  EncoderConfig(const EncoderConfig&) = default;
  EncoderConfig& operator=(const EncoderConfig&) = default;
  EncoderConfig(EncoderConfig&&) = default;
  EncoderConfig& operator=(EncoderConfig&&) = default;
};

// A configuration of any kind as a value: copies are independent of each other.
class ModelConfig {
 public:
  ModelConfig();                                                         // an ETC with the defaults of etc-core 2.1
  ModelConfig(const EncoderConfig& config) : config_(config.clone()) {}  // NOLINT: any kind is one
  ModelConfig(const ModelConfig& other) : config_(other.config_->clone()) {}
  ModelConfig& operator=(const ModelConfig& other) {
    config_ = other.config_->clone();
    return *this;
  }
  ModelConfig(ModelConfig&&) = default;
  ModelConfig& operator=(ModelConfig&&) = default;

  EncoderConfig& operator*() { return *config_; }
  const EncoderConfig& operator*() const { return *config_; }
  EncoderConfig* operator->() { return config_.get(); }
  const EncoderConfig* operator->() const { return config_.get(); }

 private:
  std::unique_ptr<EncoderConfig> config_;  // null in a moved-from one only
};

// What to do with a key that is none: in our own files it is refused, in a foreign one it is ignored with a warning.
enum class UnknownKeys { refuse, warn };

// Throws UsageError with a suggestion at the first key that `fields` lacks, or logs a warning of each; UsageError, too,
// where `json` is no object.
void check_keys(const Json& json, const Fields& fields, UnknownKeys unknown, const std::string& where);

// A kind of encoder, as key `kind` of section `model` names it.
struct ModelKind {
  std::string name;
  ModelConfig defaults;
  ModelConfig (*read)(const Json& fields, const std::string& where, UnknownKeys unknown);  // without the key
};

// All kinds there are, the first being that of a section that names none. The one place that knows them.
const std::vector<ModelKind>& model_kinds();
std::vector<std::string> model_kind_names();
const ModelKind& model_kind(const std::string& name, const std::string& where);  // UsageError with a suggestion

// The kind that a section `model` names, the first one's name where it names none. Does not look whether there is one.
std::string model_kind_of(const Json& section);

// The configuration of a JSON object of fields (section `model` of a configuration file or checkpoint). errors:
// etc_config_from_json. Does not validate().
ModelConfig model_config_from_json(const Json& json, const std::string& where, UnknownKeys unknown);

// Warns of each of its unread_keys().
void warn_of_unread_keys(const EncoderConfig& config);

// Presets by name: an ETC's "tiny", "small", "base", "large"; a dense encoder's with "dense-" before its own. Throws
// UsageError with a suggestion on another. vocab_size is 0.
std::vector<std::string> model_preset_names();
ModelConfig model_preset(const std::string& name);

}  // namespace etc
