#include "etc_core/checkpoint/convert/bert/lift.h"

#include <algorithm>
#include <array>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/shape.h"
#include "etc_core/checkpoint/convert/bert/bert_names.h"
#include "etc_core/checkpoint/convert/unplaced.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/etc_encoder.h"

namespace etc::convert {

namespace {

constexpr double kLeastMatched = 0.9;  // pretraining 7

const std::string kWords = "bert/embeddings/word_embeddings";
const std::string kTypes = "bert/embeddings/token_type_embeddings";
const std::string kPositions = "bert/embeddings/position_embeddings";
const std::string kMlmBias = "cls/predictions/output_bias";

// Parts of parameter names and the variables they are copied from. "{}" is the layer.
struct Rule {
  std::string_view part, from;
};
constexpr std::array<Rule, 17> kRules = {{
    {"/long_emb_layer_norm/", "bert/embeddings/LayerNorm/"},
    {"/global_emb_layer_norm/", "bert/embeddings/LayerNorm/"},
    {"/layer_norm_0/", "{}attention/output/LayerNorm/"},
    {"/layer_norm_1/", "{}attention/output/LayerNorm/"},
    {"/long_query_projection/linear/", "{}attention/self/query/"},
    {"/global_query_projection/linear/", "{}attention/self/query/"},
    {"/l2l_key_projection/linear/", "{}attention/self/key/"},
    {"/l2g_key_projection/linear/", "{}attention/self/key/"},
    {"/g2g_key_projection/linear/", "{}attention/self/key/"},
    {"/g2l_key_projection/linear/", "{}attention/self/key/"},
    {"/l2l_value_projection/linear/", "{}attention/self/value/"},
    {"/l2g_value_projection/linear/", "{}attention/self/value/"},
    {"/g2g_value_projection/linear/", "{}attention/self/value/"},
    {"/g2l_value_projection/linear/", "{}attention/self/value/"},
    {"/dense_layers/layer_0/", "{}intermediate/dense/"},
    {"/dense_layers/layer_1/", "{}output/dense/"},
    {"/layer_norm/", "{}output/LayerNorm/"},
}};

// The number after "fused_att_layer_" or "feed_forward_layer_".
std::string layer_of(std::string_view parameter) {
  for (const std::string_view before : {"/fused_att_layer_", "feed_forward_layer_"}) {
    const std::size_t found = parameter.find(before);
    if (found == std::string_view::npos) continue;
    const std::size_t first = found + before.size();
    return std::string(parameter.substr(first, parameter.find('/', first) - first));
  }
  return "";
}

// What happens to one parameter.
struct Step {
  enum class Kind { copy, tokens, segments, positions, mlm_bias, fresh } kind = Kind::copy;
  std::string variable;  // of BERT; empty: the parameter is initialised
};

Step step_of(const std::string& parameter, const LiftOptions& options) {
  if (parameter.ends_with("token_emb_lookup/embedding_table")) return {Step::Kind::tokens, kWords};
  if (parameter.ends_with("segment_emb_lookup/embedding_table")) return {Step::Kind::segments, kTypes};
  if (parameter.starts_with("position_emb_lookup_")) {
    return options.exact ? Step{Step::Kind::positions, kPositions} : Step{Step::Kind::fresh, ""};
  }
  if (parameter == kMlmBias) return {Step::Kind::mlm_bias, kMlmBias};
  if (parameter.starts_with("cls/")) return {Step::Kind::copy, parameter};
  const std::string from = lifted_from(parameter);
  return {from.empty() ? Step::Kind::fresh : Step::Kind::copy, from};
}

void require_same_sizes(const BertConfig& bert, const EtcConfig& config, const LiftOptions& options) {
  std::vector<std::string> faults;
  const auto same = [&](const char* field, std::int64_t theirs, std::int64_t ours) {
    if (theirs != ours)
      faults.push_back(fmt::format("{}: expected {} as in the checkpoint, got {}", field, theirs, ours));
  };
  same("hidden_size", bert.hidden_size, config.hidden_size);
  same("num_hidden_layers", bert.num_hidden_layers, config.num_hidden_layers);
  same("num_attention_heads", bert.num_attention_heads, config.num_attention_heads);
  same("num_attention_heads * att_size_per_head", bert.hidden_size, config.attention_size());
  same("intermediate_size", bert.intermediate_size, config.intermediate_size);
  same("embedding_size", bert.hidden_size, config.embedding_width());
  if (options.exact) {
    same("vocab_size", bert.vocab_size, config.vocab_size);
    same("max_absolute_position_embeddings", bert.max_position_embeddings - bert.first_position(options.kind),
         config.max_absolute_position_embeddings);
    if (config.segment_vocab_size < bert.type_vocab_size) {
      same("segment_vocab_size", bert.type_vocab_size, config.segment_vocab_size);
    }
  }
  if (const std::string activation = etc_activation(bert.hidden_act, "lift"); activation != config.hidden_act) {
    faults.push_back(
        fmt::format("hidden_act: expected {} as in the checkpoint, got {}", activation, config.hidden_act));
  }
  if (!faults.empty()) fail_usage("lift", "the configuration does not fit:\n  {}", fmt::join(faults, "\n  "));
}

class Lift {
 public:
  Lift(const TensorSource& source, const BertConfig& bert, const VocabularyMatch* vocabulary,
       const LiftOptions& options)
      : source_(source), bert_(bert), vocabulary_(vocabulary), options_(options), variables_(bert_variables(source)) {}

  const BertVariables& variables() const { return variables_; }

  // Describes what is wrong with the variable of this step (missing, or another shape than needed); "" if nothing.
  std::string fault(const Parameter& parameter, const Step& step) const {
    if (step.kind == Step::Kind::fresh) return "";
    const auto found = variables_.find(step.variable);
    std::vector<std::int64_t> expected = parameter.shape;
    if (step.kind == Step::Kind::tokens || step.kind == Step::Kind::mlm_bias) expected[0] = bert_.vocab_size;
    if (step.kind == Step::Kind::segments) expected[0] = bert_.type_vocab_size;
    if (step.kind == Step::Kind::positions) expected[0] = bert_.max_position_embeddings;
    if (found == variables_.end()) return fmt::format("{} {} absent", step.variable, shape_text(expected));
    const SourceTensor tensor{source_.at(found->second.stored).dtype, found->second.shape};
    if (tensor.matches(expected)) return "";
    return fmt::format("{}: {}", found->second.stored, tensor.mismatch(expected));
  }

  // Throws Error naming everything that is wrong with the source; position_mean also needs the position table.
  void require_match(const ParameterSet& parameters, const std::vector<Step>& steps) const {
    std::vector<std::string> faults;
    for (std::size_t i = 0; i < steps.size(); ++i) faults.push_back(fault(*parameters.all()[i], steps[i]));
    if (options_.position_mean) {
      Parameter table;
      table.shape = {0, bert_.hidden_size};
      faults.push_back(fault(table, {Step::Kind::positions, kPositions}));
    }
    std::sort(faults.begin(), faults.end());
    faults.erase(std::unique(faults.begin(), faults.end()), faults.end());
    std::erase(faults, "");
    require_all_matched(source_, std::move(faults), unplaced(used(steps)));
  }

  void fill(Parameter& parameter, const Step& step) const {
    switch (step.kind) {
      case Step::Kind::copy:
        copy(step.variable, parameter.allocate().data());
        break;
      case Step::Kind::tokens:
      case Step::Kind::mlm_bias:
        copy_rows(parameter, step.variable);
        break;
      case Step::Kind::segments:
        copy_segments(parameter);
        break;
      case Step::Kind::positions: {
        const std::vector<float> all = values(kPositions);
        const auto skipped = bert_.first_position(options_.kind) * bert_.hidden_size;
        std::copy(all.begin() + skipped, all.end(), parameter.allocate().data());
        break;
      }
      case Step::Kind::fresh:
        make_fresh(parameter);
        break;
    }
    require_finite(source_.where(), parameter);
  }

  // Every parameter and every tensor of the source, without notes.
  ConversionReport report(const ParameterSet& parameters, const std::vector<Step>& steps) const {
    ConversionReport made;
    made.source = source_.where();
    made.kind = options_.kind == BertKind::roberta ? "RoBERTa" : "BERT";
    const auto used_tensors = used(steps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Parameter& parameter = *parameters.all()[i];
      if (steps[i].kind == Step::Kind::fresh) {
        made.initialised.push_back({parameter.name, parameter.shape, fresh_text(parameter)});
      } else {
        made.copied.push_back({parameter.name, parameter.shape, origin(parameter, steps[i])});
      }
    }
    for (const auto& [stored, tensor] : source_.tensors()) {
      if (!used_tensors.contains(stored)) made.left_out.push_back({stored, tensor.text(), why_unused(stored)});
    }
    return made;
  }

 private:
  // The tensors of the source that have become parameters.
  std::set<std::string, std::less<>> used(const std::vector<Step>& steps) const {
    std::set<std::string, std::less<>> names;
    const auto add = [&](const std::string& variable) {
      if (const auto found = variables_.find(variable); found != variables_.end()) names.insert(found->second.stored);
    };
    for (const Step& step : steps) add(step.variable);
    if (options_.position_mean && !options_.exact) add(kPositions);
    return names;
  }
  std::string why_unused(std::string_view stored) const {
    return is_beside_another(source_, stored) ? kOptimiserSlot : why_left_out(stored, options_.exact);
  }

  // The origin of the numbers, for the report; empty: initialised.
  std::string origin(const Parameter& parameter, const Step& step) const {
    if (step.kind == Step::Kind::fresh) return "";
    const BertVariable& variable = variables_.at(step.variable);
    if (step.kind == Step::Kind::segments && !options_.exact) {
      return variable.stored + (options_.position_mean ? ", row 0 plus the mean position" : ", row 0");
    }
    if (step.kind == Step::Kind::segments) {
      return variable.stored + (parameter.shape[0] > bert_.type_vocab_size ? ", then row 0" : "");
    }
    if (vocabulary_ != nullptr && step.kind != Step::Kind::copy) {
      return fmt::format("{}, {} of {} rows by the spelling of their pieces", variable.stored,
                         parameter.shape[0] - vocabulary_->unmatched_targets, parameter.shape[0]);
    }
    return variable.stored + (variable.transposed ? ", transposed" : "");
  }
  std::string fresh_text(const Parameter& parameter) const {
    return is_zero_table(parameter) || parameter.initializer.kind == Initializer::Kind::zeros
               ? "zeros"
               : fmt::format("normal, deviation {}", parameter.initializer.stddev);
  }

  // The encoder's tensors without a parameter and without a known reason to be left out.
  std::vector<std::string> unplaced(const std::set<std::string, std::less<>>& used) const {
    std::vector<std::string> names;
    for (const auto& [stored, tensor] : source_.tensors()) {
      const bool known = used.contains(stored) || !is_bert_encoder(stored) || why_unused(stored) != kUnknownTensor;
      if (!known) names.push_back(stored);
    }
    return names;
  }

  bool is_zero_table(const Parameter& parameter) const {
    return parameter.name.ends_with("/relative_emb_table") && !options_.normal_relative_tables;
  }

  void make_fresh(Parameter& parameter) const {
    if (is_zero_table(parameter)) {
      parameter.allocate().zero();
    } else {
      initialize_parameter(parameter, options_.seed);
    }
  }

  std::vector<float> values(const std::string& variable) const {
    const std::string& stored = variables_.at(variable).stored;
    std::vector<float> numbers(static_cast<std::size_t>(source_.at(stored).count()));
    source_.read_floats(stored, numbers.data());
    return numbers;
  }

  void copy(const std::string& name, float* out) const { read_variable(source_, variables_.at(name), out); }

  // Copies rows of the token table, or numbers of the output bias, in the order of the target vocabulary.
  void copy_rows(Parameter& parameter, const std::string& variable) const {
    if (vocabulary_ == nullptr) return copy(variable, parameter.allocate().data());
    if (vocabulary_->unmatched_targets > 0) initialize_parameter(parameter, options_.seed);
    const std::vector<float> stored = values(variable);
    float* out = parameter.allocate().data();
    const std::int64_t width = parameter.size() / parameter.shape[0];
    for (std::int64_t row = 0; row < parameter.shape[0]; ++row) {
      const std::int64_t from = vocabulary_->source_rows[static_cast<std::size_t>(row)];
      if (from >= 0) std::copy_n(stored.begin() + from * width, width, out + row * width);
    }
  }

  void copy_segments(Parameter& parameter) const {
    std::vector<float> types = values(kTypes);
    const std::int64_t hidden = bert_.hidden_size;
    if (options_.position_mean && !options_.exact) {
      const std::vector<float> positions = values(kPositions);
      const std::int64_t first = bert_.first_position(options_.kind), rows = bert_.max_position_embeddings - first;
      for (std::int64_t column = 0; column < hidden; ++column) {
        double sum = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          sum += positions[static_cast<std::size_t>((first + row) * hidden + column)];
        }
        types[static_cast<std::size_t>(column)] += static_cast<float>(sum / static_cast<double>(rows));
      }
    }
    float* out = parameter.allocate().data();
    for (std::int64_t row = 0; row < parameter.shape[0]; ++row) {
      const std::int64_t from = options_.exact && row < bert_.type_vocab_size ? row : 0;
      std::copy_n(types.begin() + from * hidden, hidden, out + row * hidden);
    }
  }

  const TensorSource& source_;
  const BertConfig& bert_;
  const VocabularyMatch* vocabulary_;
  const LiftOptions& options_;
  BertVariables variables_;
};

}  // namespace

std::string lifted_from(std::string_view parameter) {
  const std::string_view tail = parameter.substr(parameter.rfind('/') + 1);
  if (parameter.find("_output_projection/") != std::string_view::npos) {
    return fmt::format("bert/encoder/layer_{}/attention/output/dense/{}", layer_of(parameter), tail);
  }
  for (const Rule& rule : kRules) {
    if (parameter.find(rule.part) == std::string_view::npos) continue;
    std::string from(rule.from);
    if (from.starts_with("{}")) from = fmt::format("bert/encoder/layer_{}/{}", layer_of(parameter), from.substr(2));
    return from.append(tail);
  }
  return "";
}

namespace {

// Rows of the target's vocabulary: their number, and how many have a piece of the checkpoint's vocabulary.
struct VocabularyRows {
  std::int64_t all, matched;
};

// Throws UsageError unless the configuration has as many rows, Error if less than kLeastMatched of them are matched.
VocabularyRows vocabulary_rows(const BertConfig& bert, const EtcConfig& config, const VocabularyMatch* vocabulary,
                               const LiftOptions& options) {
  const std::int64_t all =
      vocabulary != nullptr ? static_cast<std::int64_t>(vocabulary->source_rows.size()) : bert.vocab_size;
  if (config.vocab_size != all) fail_usage("lift", "vocab_size: expected {}, got {}", all, config.vocab_size);
  const std::int64_t matched = vocabulary != nullptr ? all - vocabulary->unmatched_targets : all;
  if (static_cast<double>(matched) < kLeastMatched * static_cast<double>(all) && !options.allow_partial_vocabulary) {
    fail("lift",
         "{} of the {} pieces of the vocabulary are in the checkpoint's vocabulary: expected 90 % or more "
         "(another vocabulary? --allow-partial-vocabulary takes it as it is)",
         matched, all);
  }
  return {all, matched};
}

// The head's parameters; its output bias has one number per row of the target's vocabulary.
void add_heads(const BertVariables& variables, std::int64_t rows, ParameterSet& parameters) {
  for (const auto& [name, variable] : variables) {
    if (!name.starts_with("cls/predictions/")) continue;
    std::vector<std::int64_t> shape = variable.shape;
    if (name == kMlmBias) shape = {rows};
    parameters.add(name, std::move(shape), {});
  }
}

std::vector<std::string> vocabulary_notes(const VocabularyMatch& vocabulary, const VocabularyRows& rows) {
  std::vector<std::string> notes;
  notes.push_back(fmt::format("vocabulary: {} of {} pieces found, {} initialised; {} pieces of the source unused",
                              rows.matched, rows.all, rows.all - rows.matched, vocabulary.unmatched_sources.size()));
  if (!vocabulary.specials.empty()) notes.push_back(fmt::format("{}", fmt::join(vocabulary.specials, ", ")));
  return notes;
}

}  // namespace

ConversionReport lift_bert(const TensorSource& source, const BertConfig& bert, const EtcConfig& config,
                           const VocabularyMatch* vocabulary, const LiftOptions& options, ParameterSet& parameters) {
  require_same_sizes(bert, config, options);
  const VocabularyRows rows = vocabulary_rows(bert, config, vocabulary, options);

  const Lift lift(source, bert, vocabulary, options);
  const EtcEncoder encoder(config, parameters);
  if (options.keep_heads) add_heads(lift.variables(), rows.all, parameters);
  std::vector<Step> steps;
  for (const auto& parameter : parameters.all()) steps.push_back(step_of(parameter->name, options));
  lift.require_match(parameters, steps);
  source.require_numbers();

  parallel_for(static_cast<std::int64_t>(steps.size()), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    lift.fill(*parameters.all()[at], steps[at]);
  });

  ConversionReport report = lift.report(parameters, steps);
  if (vocabulary != nullptr) report.notes = vocabulary_notes(*vocabulary, rows);
  for (std::string& note : differences(source, bert)) report.notes.push_back(std::move(note));
  if (std::string note = plain_scores_note(bert); !note.empty()) report.notes.push_back(std::move(note));
  if (options.exact) {
    report.notes.push_back("exact: give token types as segment ids (ETC's default for long tokens is 1)");
    if (std::string note = block_sparse_note(bert); !note.empty()) report.notes.push_back(std::move(note));
  }
  return report;
}

}  // namespace etc::convert
