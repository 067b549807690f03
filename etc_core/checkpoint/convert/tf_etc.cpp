#include "etc_core/checkpoint/convert/tf_etc.h"

#include <algorithm>
#include <array>

#include "etc_core/base/error.h"
#include "etc_core/base/shape.h"
#include "etc_core/checkpoint/convert/config_check.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/etc_encoder.h"

namespace etc::convert {

namespace {

struct HeadName {
  std::string_view prefix;
  const char* task;
};
constexpr std::array<HeadName, 15> kHeads = {{{"cls/nq/", "nq"},
                                              {"cls/squad/", "squad"},
                                              {"cls/cpc/", "contrastive coding"},
                                              {"bert/pooler/", "next sentence or glue"},
                                              {"word_emb_layer_norm/", "openkp"},
                                              {"logit_dense", "openkp"},
                                              {"cls/predictions/", "masked language model"},
                                              {"cls/seq_relationship/", "next sentence"},
                                              {"answer_type_output_", "nq or hotpotqa"},
                                              {"supporting_facts_output_", "hotpotqa"},
                                              {"answer_span_output_", "hotpotqa"},
                                              {"answer_bio_output_", "hotpotqa"},
                                              {"global_output_layer/", "wikihop"},
                                              {"output_weights", "wikihop or glue"},
                                              {"output_bias", "wikihop or glue"}}};

// "x/adam_m" → "x"; empty when it is no slot.
std::string_view slot_owner(std::string_view variable) {
  for (const std::string_view tail : {"/adam_m", "/adam_v"}) {
    if (variable.ends_with(tail)) return variable.substr(0, variable.size() - tail.size());
  }
  return {};
}

// The variables of a source, sorted by kind. Encoder variables and slots have the names of the model.
struct Sorted {
  SourceTensors encoder;
  std::map<std::string, std::string> encoder_source, slots, heads;  // name in the model → name in the source
  std::vector<std::string> others;
  bool has_step = false;
};

Sorted sort_variables(const TensorSource& source) {
  Sorted sorted;
  for (const auto& [variable, tensor] : source.tensors()) {
    const std::string name = model_name(variable);
    if (!slot_owner(variable).empty()) {
      sorted.slots.emplace(name, variable);
    } else if (variable == kGlobalStep) {
      sorted.has_step = true;
    } else if (is_encoder_tensor(name)) {
      if (!sorted.encoder_source.emplace(name, variable).second) {
        fail(source.where(), "{} is there with and without the model's prefix", name);
      }
      sorted.encoder.emplace(name, tensor);
    } else if (!head_task(variable).empty()) {
      sorted.heads.emplace(variable, variable);
    } else {
      sorted.others.push_back(variable);
    }
  }
  return sorted;
}

// Throws unless parameters and encoder variables correspond one to one; with allow_missing, parameters may be without a
// variable.
void require_match(const TensorSource& source, const Sorted& sorted, const ParameterSet& parameters,
                   bool allow_missing) {
  std::vector<std::string> faults;
  SourceTensors left = sorted.encoder;
  for (const auto& parameter : parameters.all()) {
    const auto found = left.find(parameter->name);
    if (found == left.end()) {
      if (!allow_missing) {
        faults.push_back(fmt::format("{} {} absent in file", parameter->name, shape_text(parameter->shape)));
      }
      continue;
    }
    if (!found->second.matches(parameter->shape)) {
      faults.push_back(fmt::format("{} {}", parameter->name, found->second.mismatch(parameter->shape)));
    }
    left.erase(found);
  }
  for (const auto& [name, tensor] : left) faults.push_back(fmt::format("{} {} unused", name, tensor.text()));
  if (faults.empty()) return;
  fail(source.where(), "{} tensor{} unmatched: {}", faults.size(), faults.size() == 1 ? "" : "s",
       fmt::join(faults, "; "));
}

// Reads every parameter from its variable; those without one are initialised.
void fill(const TensorSource& source, const std::map<std::string, std::string>& from, std::uint64_t seed,
          ParameterSet& parameters, ConversionReport& report) {
  std::vector<std::pair<Parameter*, std::string>> sources;
  for (const auto& parameter : parameters.all()) {
    const auto variable = from.find(parameter->name);
    if (variable == from.end()) {
      initialize_parameter(*parameter, seed);
      report.initialised.push_back({parameter->name, parameter->shape, "as a fresh model's: absent in the checkpoint"});
      continue;
    }
    sources.emplace_back(parameter.get(), variable->second);
    report.copied.push_back({parameter->name, parameter->shape, variable->second});
  }
  fill_parameters(source.where(), std::move(sources),
                  [&](const std::string& variable, float* out, const NumbersRead& seen) {
                    source.read_floats(variable, out, seen);
                  });
}

void read_slots(const TensorSource& source, const Sorted& sorted, ParameterSet& parameters, TfEtcExtras& extras,
                ConversionReport& report) {
  for (const auto& [name, variable] : sorted.slots) {
    const Parameter* owner = parameters.find(slot_owner(name));
    const SourceTensor& tensor = source.at(variable);
    if (owner == nullptr) {
      report.left_out.push_back({variable, tensor.text(), kOptimiserSlot});
    } else if (tensor.shape != owner->shape) {
      fail(source.where(), "{}: expected {} as its variable, got {}", variable, shape_text(owner->shape),
           tensor.text());
    } else {
      Tensor values = Tensor::empty(tensor.shape, Purpose::moments);
      source.read_floats(variable, values.data());
      report.copied.push_back({name, tensor.shape, variable});
      extras.slots.emplace(name, std::move(values));
    }
  }
}

// Adds the variables that become no parameters to the report.
void report_left_out(const TensorSource& source, const Sorted& sorted, const TfEtcOptions& options,
                     ConversionReport& report) {
  if (!options.with_optimizer_slots) {
    for (const auto& [name, variable] : sorted.slots) {
      report.left_out.push_back({variable, source.at(variable).text(), kOptimiserSlot});
    }
  }
  for (const std::string& variable : sorted.others) {
    report.left_out.push_back({variable, source.at(variable).text(), kUnknownTensor});
  }
}

}  // namespace

std::string head_task(std::string_view variable) {
  // OpenKP's "3gram_conv/kernel": one of each length of phrases.
  const std::size_t digits = std::min(variable.find_first_not_of("0123456789"), variable.size());
  if (digits > 0 && variable.substr(digits).starts_with("gram_")) return "openkp";
  const auto found = std::find_if(kHeads.begin(), kHeads.end(),
                                  [&](const HeadName& head) { return variable.starts_with(head.prefix); });
  return found == kHeads.end() ? "" : found->task;
}

ConversionReport read_tf_etc(const TensorSource& source, const EtcConfig& config, const TfEtcOptions& options,
                             ParameterSet& parameters, TfEtcExtras& extras) {
  Sorted sorted = sort_variables(source);
  if (sorted.encoder.empty()) {
    fail(source.where(),
         "no variable begins with etc_document_bert/: not an ETC checkpoint (--from bert reads BERT's)");
  }
  if (const auto faults = contradictions(config, sorted.encoder); !faults.empty()) {
    fail(source.where(), "the configuration is not that of the checkpoint:\n  {}", fmt::join(faults, "\n  "));
  }
  const EtcEncoder encoder(config, parameters);
  require_match(source, sorted, parameters, options.allow_missing);
  source.require_numbers();

  ConversionReport report;
  report.source = source.where();
  report.kind = "TensorFlow ETC checkpoint";
  std::map<std::string, std::string> from = std::move(sorted.encoder_source);
  for (const auto& [name, variable] : sorted.heads) {
    const SourceTensor& tensor = source.at(variable);
    if (options.keep_heads && tensor.dtype && is_readable_float(*tensor.dtype)) {
      parameters.add(name, tensor.shape, {});
      from.emplace(name, variable);
    } else {
      report.left_out.push_back({variable, tensor.text(), "head of task " + head_task(variable)});
    }
  }
  fill(source, from, options.seed, parameters, report);
  if (options.with_optimizer_slots) read_slots(source, sorted, parameters, extras, report);
  report_left_out(source, sorted, options, report);
  if (sorted.has_step) {
    const auto step = source.read_integers(kGlobalStep);
    if (step.size() == 1) {
      if (options.with_optimizer_slots) extras.global_step = step[0];
      report.notes.push_back(fmt::format("trained for {} steps", step[0]));
    }
  }
  return report;
}

}  // namespace etc::convert
