#include "tasks/analyze/gradient_norms.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/progress.h"
#include "etc_core/checkpoint/model_files.h"
#include "tasks/train/stop_signal.h"

namespace etc::analyze {

namespace {

data::LoadedExample loaded(const data::DatasetReader& reader, std::int64_t index) {
  return {index, index, reader.read(index)};
}

// Sum of squares in the order of the elements, so the bits do not depend on the thread count.
double squares_of(const Tensor& gradient) {
  double sum = 0;
  for (std::int64_t i = 0; i < gradient.size(); ++i) {
    const double x = static_cast<double>(gradient.data()[i]);
    sum += x * x;
  }
  return sum;
}

// The norms of the gradients that the parameters hold.
void take_norms(const ParameterSet& parameters, std::int64_t layers, GradientNorms& norms) {
  norms.query_key.assign(static_cast<std::size_t>(layers), 0);
  norms.rest = norms.query_key;
  for (const auto& parameter : parameters.all()) {
    const ParameterPlace place = place_of_parameter(parameter->name);
    if (place.layer < 0 || place.layer >= layers || !parameter->grad) continue;
    auto& squares = place.of_scores ? norms.query_key : norms.rest;
    squares[static_cast<std::size_t>(place.layer)] += squares_of(parameter->grad);
  }
  for (auto* const part : {&norms.query_key, &norms.rest}) {
    for (double& value : *part) value = std::sqrt(value);
  }
}

}  // namespace

std::array<std::pair<std::string, std::vector<double>>, 2> parts_of(const GradientNorms& norms) {
  return {{{"query_key", norms.query_key}, {"rest", norms.rest}}};
}

ParameterPlace place_of_parameter(const std::string& name) {
  constexpr std::string_view kLayer = "layer_";
  const std::size_t at = is_encoder_tensor(name) ? name.find(kLayer) : std::string::npos;
  ParameterPlace place;
  if (at == std::string::npos) return place;
  const auto has = [&](const char* part) { return name.find(part, at) != std::string::npos; };
  const char* const digits = name.data() + at + kLayer.size();
  if (std::from_chars(digits, name.data() + name.size(), place.layer).ec != std::errc()) return {};
  place.of_scores = has("query") || has("key") || (has("relative_") && !has("relative_value"));
  return place;
}

double add_gradient(TaskModel& model, Examples alone, std::span<const double> counts, const std::string& where) {
  EncoderInput input = model.task->feed(alone, where);
  Tape tape(Recording::on);
  HeadOutput logits = model.forward(tape, alone, input, ForwardOptions{});
  const double loss = model.task->loss(tape, alone, input, logits, counts);
  tape.backward();
  return loss;
}

std::vector<double> loss_counts(const Task& task, const data::DatasetReader& reader,
                                std::span<const std::int64_t> examples, const std::string& where) {
  std::vector<double> counts(task.loss_terms().size(), 0.0);
  for (const std::int64_t index : examples) task.count(loaded(reader, index), counts);
  if (std::all_of(counts.begin(), counts.end(), [](double count) { return count == 0; })) {
    fail(where, "gradient norms are those of a loss: expected examples with answers, got none in {}", examples.size());
  }
  return counts;
}

GradientNorms gradient_norms_of(TaskModel& model, const data::DatasetReader& reader,
                                std::span<const std::int64_t> examples, const std::string& where) {
  const std::vector<double> counts = loss_counts(*model.task, reader, examples, where);
  GradientNorms norms;
  norms.examples = std::ssize(examples);
  model.parameters.drop_gradients();
  Progress progress("gradients", norms.examples, "examples");
  for (std::int64_t n = 0; n < norms.examples; ++n) {
    if (StopSignal::requested()) throw Interrupted("etc analyze: stopped before the end; no file was written");
    const std::vector<data::LoadedExample> alone{loaded(reader, examples[static_cast<std::size_t>(n)])};
    norms.loss += add_gradient(model, alone, counts, where);
    if (!std::isfinite(norms.loss)) fail(where, "example {}: expected a loss, got {}", alone.front().index, norms.loss);
    progress.update(n + 1);
  }
  progress.finish();
  take_norms(model.parameters, model.config->num_hidden_layers, norms);
  model.parameters.drop_gradients();
  for (std::size_t layer = 0; layer < norms.rest.size(); ++layer) {
    if (std::isfinite(norms.query_key[layer]) && std::isfinite(norms.rest[layer])) continue;
    fail(where, "layer {}: expected gradients, got numbers that are not finite", layer);
  }
  return norms;
}

}  // namespace etc::analyze
