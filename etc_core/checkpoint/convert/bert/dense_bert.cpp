#include "etc_core/checkpoint/convert/bert/dense_bert.h"

#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/shape.h"
#include "etc_core/checkpoint/convert/bert/bert_names.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/encoder.h"

namespace etc::convert {

namespace {

bool is_pooler(std::string_view name) {
  return name.starts_with("bert/pooler/");
}

// Throws unless every parameter has its variable, as numbers of its shape.
void require_match(const TensorSource& source, const BertVariables& variables, const ParameterSet& parameters) {
  std::vector<std::string> faults;
  for (const auto& parameter : parameters.all()) {
    const auto found = variables.find(parameter->name);
    if (found == variables.end()) {
      faults.push_back(fmt::format("{} {} absent", parameter->name, shape_text(parameter->shape)));
      continue;
    }
    const SourceTensor& tensor = source.at(found->second.stored);
    if (tensor.dtype && is_readable_float(*tensor.dtype) && found->second.shape == parameter->shape) continue;
    faults.push_back(fmt::format("{}: expected {}, got {}", found->second.stored, shape_text(parameter->shape),
                                 SourceTensor{tensor.dtype, found->second.shape}.text()));
  }
  if (!faults.empty()) fail(source.where(), "{} unmatched: {}", faults.size(), fmt::join(faults, "; "));
}

ConversionReport report_of(const TensorSource& source, const BertConfig& bert, const BertVariables& variables,
                           const ParameterSet& parameters) {
  ConversionReport report;
  report.source = source.where();
  report.kind = "BERT";
  std::set<std::string> used;
  for (const auto& parameter : parameters.all()) {
    const BertVariable& variable = variables.at(parameter->name);
    report.copied.push_back(
        {parameter->name, parameter->shape, variable.stored + (variable.transposed ? ", transposed" : "")});
    used.insert(variable.stored);
  }
  for (const auto& [stored, tensor] : source.tensors()) {
    if (used.count(stored) != 0) continue;
    const bool head = bert_name(stored).name.starts_with("cls/");
    report.left_out.push_back(
        {stored, tensor.text(), head ? "head (--keep-heads takes it along)" : why_left_out(stored, true)});
  }
  report.notes = differences(source, bert);
  return report;
}

}  // namespace

DenseConfig dense_config_for(const BertConfig& bert) {
  DenseConfig config;
  take_common_fields(bert, config);
  config.segment_vocab_size = bert.type_vocab_size;
  config.max_absolute_position_embeddings = bert.max_position_embeddings;
  return config;
}

ConversionReport read_dense_bert(const TensorSource& source, const BertConfig& bert, bool keep_heads,
                                 ParameterSet& parameters) {
  const BertVariables variables = bert_variables(source);
  const auto encoder = dense_config_for(bert).make_encoder(parameters);
  for (const auto& [name, variable] : variables) {
    const bool behind = is_pooler(name) || (keep_heads && name.starts_with("cls/"));
    if (behind) parameters.add(name, variable.shape, {});
  }
  require_match(source, variables, parameters);
  source.require_numbers();
  parallel_for(static_cast<std::int64_t>(parameters.all().size()), [&](std::int64_t i) {
    Parameter& parameter = *parameters.all()[static_cast<std::size_t>(i)];
    read_variable(source, variables.at(parameter.name), parameter.allocate().data());
    require_finite(source.where(), parameter);
  });
  return report_of(source, bert, variables, parameters);
}

}  // namespace etc::convert
