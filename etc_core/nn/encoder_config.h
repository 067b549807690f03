// The part of the configuration that is common to all kinds of encoders, and the interface for tasks and tools.
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

// Whether attention between long and global tokens follows the structure of the example, or is reduced to what the
// read-out needs (an ablation): no long token sees a global one; a global token sees only itself and the long tokens
// that belong to it. In a layer, information then travels no farther than the window.
enum class GlobalAttention { full, read_out };
constexpr GlobalAttention global_attention(bool full) {  // as written in configuration files
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
  std::vector<std::string> residual_attention_types;  // subset of attention_types(): those that carry scores

  virtual ~EncoderConfig() = default;

  std::int64_t head_size() const;       // D
  std::int64_t attention_size() const;  // A = N·D
  std::int64_t embedding_width() const;
  bool carries_scores() const { return use_residual_attention && !residual_attention_types.empty(); }

  // The names of all attention types; residual_attention_types is a subset.
  virtual const std::vector<std::string>& attention_types() const = 0;

  // Throws UsageError "config: …" on impossible combinations, each naming field, value and limit.
  virtual void validate() const = 0;

  // Keys with a non-default value that have no effect in combination with the other keys. This is not an error, since
  // runs that compare methods share the rest of their configuration.
  virtual std::vector<std::string> unread_keys() const { return {}; }

  virtual const Fields& fields() const = 0;  // every field with its help and its range
  virtual Json to_json() const = 0;          // all fields, sorted
  virtual std::unique_ptr<EncoderConfig> clone() const = 0;

  // Limits the number of layers (of each stack) to `layers` (at least 1), for measurements of a part of the model.
  virtual void keep_layers(std::int64_t layers);

  // Validates, then creates an encoder of this configuration and adds its parameters to the set.
  virtual std::unique_ptr<Encoder> make_encoder(ParameterSet& parameters) const = 0;

  // Whether inputs and states have global tokens. If not, tasks omit theirs.
  virtual bool has_global_tokens() const = 0;

  // How labels follow from the structure of an example: radius, distances, hard masks. Empty if the encoder reads no
  // labels.
  virtual std::optional<sparse::LabelOptions> label_options() const = 0;

  // Labels of a batch from the structures of its examples; none if the encoder reads no labels.
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
  std::unique_ptr<EncoderConfig> config_;  // null only after being moved from
};

// How to handle an unknown key: it is rejected in our own files, and ignored with a warning in foreign ones.
enum class UnknownKeys { refuse, warn };

// For keys that `fields` lacks, throws UsageError with a suggestion at the first one, or logs a warning for each. Also
// throws UsageError if `json` is not an object.
void check_keys(const Json& json, const Fields& fields, UnknownKeys unknown, const std::string& where);

// A kind of encoder, as named by key `kind` of section `model`.
struct ModelKind {
  std::string name;
  ModelConfig defaults;
  ModelConfig (*read)(const Json& fields, const std::string& where, UnknownKeys unknown);  // without `kind`
};

// All kinds; the first is the default for a section without key `kind`. The only list of kinds.
const std::vector<ModelKind>& model_kinds();
std::vector<std::string> model_kind_names();
const ModelKind& model_kind(const std::string& name, const std::string& where);  // UsageError with a suggestion

// The kind that a section `model` names, or the name of the first kind if it names none. Does not check that the kind
// exists.
std::string model_kind_of(const Json& section);

// The configuration of a JSON object of fields (section `model` of a configuration file or checkpoint). Errors as
// etc_config_from_json. Does not validate().
ModelConfig model_config_from_json(const Json& json, const std::string& where, UnknownKeys unknown);

// Logs a warning for each of its unread_keys().
void warn_of_unread_keys(const EncoderConfig& config);

// Presets by name: "tiny", "small", "base", "large" for ETC; dense presets have the prefix "dense-". Throws UsageError
// with a suggestion for an unknown name. vocab_size is 0.
std::vector<std::string> model_preset_names();
ModelConfig model_preset(const std::string& name);

}  // namespace etc
