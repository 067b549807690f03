// The encoder against the published implementation: every golden file of kind `etc`, outputs of every stage, carried
// scores, loss and gradients; and the engine against itself on the same files: checkpointing, threads, neighbours.
#include <cmath>
#include <cstring>
#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "tests/golden/golden_case.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using test::GoldenCase;
using test::GoldenReport;
using test::GradientDifference;
using test::Worst;

namespace {

constexpr double kOutputTolerance = 1e-5;

// A forward and perhaps a backward pass with the file's loss, all results kept.
struct Run {
  std::map<std::int64_t, std::pair<Tensor, Tensor>> states;  // by layer, -1: embeddings; long, global
  std::map<std::int64_t, std::map<std::string, Tensor>> scores;
  Tensor long_states, global_states;
  double loss = 0;
  std::map<std::string, Tensor> gradients;
};

double seed_loss(const GoldenCase& golden, const char* name, Var& states) {
  const auto weights = golden.file.read<float>(std::string("loss/") + name).values;
  double loss = 0;
  float* gradient = states.grad().data();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    loss += static_cast<double>(weights[i]) * states.value().data()[i];
    gradient[i] = weights[i];
  }
  return loss;
}

Run run(const GoldenCase& golden, const EtcConfig& config, bool gradients,
        std::optional<std::int64_t> only = std::nullopt) {
  register_cpu_backend();
  ParameterSet parameters;
  EtcEncoder encoder(config, parameters);
  test::load_golden_weights(golden.file, "weights", parameters);
  Run result;
  ForwardOptions options;
  options.watch = [&](std::int64_t layer, const Tensor& of_long, const Tensor& of_global,
                      const ExternalScores& scores) {
    result.states[layer] = {of_long, of_global};
    if (scores.l2l) result.scores[layer]["l2l"] = scores.l2l;
    if (scores.l2g) result.scores[layer]["l2g"] = scores.l2g;
    if (scores.g2g) result.scores[layer]["g2g"] = scores.g2g;
    if (scores.g2l) result.scores[layer]["g2l"] = scores.g2l;
  };
  Tape tape(gradients);
  {
    const EtcInput input = golden.input(only);
    EtcOutput output = encoder.forward(tape, input, options);
    result.long_states = output.long_states.value();
    result.global_states = output.global_states.value();
    if (gradients) {
      result.loss =
          seed_loss(golden, "W_long", output.long_states) + seed_loss(golden, "W_global", output.global_states);
    }
  }
  if (gradients) tape.backward();
  for (const auto& parameter : parameters.all()) {
    if (parameter->grad) result.gradients[parameter->name] = parameter->grad;
  }
  return result;
}

bool equal_bits(const Tensor& a, const Tensor& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 4) == 0;
}

void require_equal_gradients(const Run& a, const Run& b) {
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (const auto& [name, gradient] : a.gradients) {
    CAPTURE(name);
    REQUIRE(equal_bits(gradient, b.gradients.at(name)));
  }
}

// Elements of [B, rows, H] that belong to rows with at least one visible key.
auto counted_rows(const GoldenCase& golden, bool global) {
  const std::int64_t rows = global ? golden.globals : golden.length, hidden = golden.config.hidden_size;
  std::vector<bool> counts;
  for (std::int64_t b = 0; b < golden.batch; ++b) {
    for (std::int64_t i = 0; i < rows; ++i) counts.push_back(!golden.masks.fully_masked(global, b, i));
  }
  return [counts, hidden](std::int64_t i) -> bool { return counts[static_cast<std::size_t>(i / hidden)]; };
}

void compare_states(Worst& worst, const GoldenCase& golden, const std::string& name, const Tensor& actual,
                    bool global) {
  if (!golden.file.has("outputs/" + name) && !golden.file.has("outputs64/" + name)) return;
  const auto expected = test::best_reference(golden.file, "", "outputs", name);
  REQUIRE(static_cast<std::int64_t>(expected.values.size()) == actual.size());
  const bool embedding = name.find("embedding") != std::string::npos;  // before any mask
  worst.compare(name, expected.values, actual.data(), 1,
                embedding ? std::function<bool(std::int64_t)>() : counted_rows(golden, global));
}

// Ours are [N, T, W] and per example [N, queries, keys]; the file has [B, N, queries, columns].
void compare_scores(Worst& worst, const GoldenCase& golden, const std::string& name, const std::string& type,
                    const Tensor& actual) {
  const auto expected = test::best_reference(golden.file, "", "outputs", name);
  const std::int64_t B = golden.batch, N = golden.config.num_attention_heads;
  const std::int64_t queries = expected.shape.at(2), columns = expected.shape.at(3);
  REQUIRE(expected.shape.at(1) == N);
  REQUIRE(actual.size() == static_cast<std::int64_t>(expected.values.size()));
  std::vector<float> arranged(expected.values.size());
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t i = 0; i < queries * columns; ++i) {
        const std::int64_t there = (b * N + n) * queries * columns + i;
        const std::int64_t here = type == "l2l" ? (n * B + b) * queries * columns + i : there;
        arranged[static_cast<std::size_t>(there)] = actual.data()[here];
      }
    }
  }
  worst.compare(name, expected.values, arranged.data(), 1, [&](std::int64_t i) {
    const std::int64_t column = i % columns, query = i / columns % queries, b = i / columns / queries / N;
    return golden.masks.allowed(type, b, query, column);
  });
}

void compare_gradients(GradientDifference& difference, const GoldenCase& golden, const Run& result) {
  std::map<std::string, std::vector<double>> expected;
  for (const std::string& name : test::data_sets_below(golden.file, "grads")) {
    expected[name] = test::best_reference(golden.file, "", "grads", name).values;
  }
  std::map<std::string, std::vector<float>> actual;
  for (const auto& [name, gradient] : result.gradients) {
    actual[name] = {gradient.data(), gradient.data() + gradient.size()};
  }
  difference.compare(expected, actual, "");
}

}  // namespace

TEST_CASE("outputs, scores, loss and gradients are those of the published model", "[golden]") {
  const auto files = test::model_files("etc");
  if (files.empty()) return;
  GoldenReport report("golden etc: worst difference (outputs, scores: absolute; gradients: relative)",
                      {"outputs", "scores", "loss", "gradients"});
  for (const auto& path : files) {
    CAPTURE(path.filename().string());
    const GoldenCase golden(path);
    const bool with_gradients = golden.file.has("grads");
    Worst outputs, scores, loss;
    GradientDifference gradients;
    // Inference first: packed weights, fused products, nothing saved.
    const Run inference = run(golden, golden.config, false);
    const Run training = with_gradients ? run(golden, golden.config, true) : inference;
    for (const Run* result : {&inference, &training}) {
      compare_states(outputs, golden, "long", result->long_states, false);
      compare_states(outputs, golden, "global", result->global_states, true);
      for (const auto& [layer, states] : result->states) {
        const std::string prefix = layer < 0 ? "embedding_" : "layer_" + std::to_string(layer) + "/";
        compare_states(outputs, golden, prefix + "long", states.first, false);
        compare_states(outputs, golden, prefix + "global", states.second, true);
        if (layer < 0 || !golden.config.use_residual_attention) continue;
        REQUIRE(result->scores.at(layer).size() == 4);
        for (const auto& [type, values] : result->scores.at(layer)) {
          compare_scores(scores, golden, prefix + "scores_" + type, type, values);
        }
      }
    }
    if (with_gradients) {
      const double expected = test::best_reference(golden.file, "", "loss", "value").values.at(0);
      const auto precise =
          golden.file.has("loss/value64") ? golden.file.read<double>("loss/value64").values.at(0) : expected;
      loss.see(std::abs(training.loss - precise) / std::max(1.0, std::abs(precise)), "loss");
      compare_gradients(gradients, golden, training);
    }
    const bool residual = golden.config.use_residual_attention;
    report.row(path.filename().string(), {outputs.value, residual ? std::optional(scores.value) : std::nullopt,
                                          with_gradients ? std::optional(loss.value) : std::nullopt,
                                          with_gradients ? std::optional(gradients.worst.value) : std::nullopt});
    CAPTURE(outputs.where, scores.where, gradients.worst.where);
    CHECK(outputs.value <= kOutputTolerance);
    CHECK(scores.value <= kOutputTolerance);
    CHECK(loss.value <= 1e-5);
    CHECK(gradients.worst.value <= GradientDifference::kTolerance);
  }
}

TEST_CASE("golden gradients have the same bits for every checkpointing period", "[golden]") {
  for (const auto& path : test::model_files("etc")) {
    CAPTURE(path.filename().string());
    const GoldenCase golden(path);
    if (!golden.file.has("grads")) continue;
    const Run plain = run(golden, golden.config, true);
    for (const std::int64_t period : {1, 2, 3}) {
      CAPTURE(period);
      EtcConfig config = golden.config;
      config.grad_checkpointing_period = period;
      const Run saving = run(golden, config, true);
      REQUIRE(equal_bits(saving.long_states, plain.long_states));
      require_equal_gradients(plain, saving);
    }
  }
}

TEST_CASE("golden results have the same bits for 1, 2 and 4 threads", "[golden]") {
  const int before = thread_count();
  for (const auto& path : test::model_files("etc")) {
    CAPTURE(path.filename().string());
    const GoldenCase golden(path);
    const bool gradients = golden.file.has("grads");
    std::optional<Run> first;
    for (const int threads : {1, 2, 4}) {
      CAPTURE(threads);
      set_thread_count(threads);
      const Run result = run(golden, golden.config, gradients);
      if (!first) first = result;
      REQUIRE(equal_bits(result.long_states, first->long_states));
      REQUIRE(equal_bits(result.global_states, first->global_states));
      require_equal_gradients(result, *first);
    }
  }
  set_thread_count(before);
}

TEST_CASE("a golden example has the same bits alone and in its batch", "[golden]") {
  for (const auto& path : test::model_files("etc")) {
    CAPTURE(path.filename().string());
    const GoldenCase golden(path);
    const Run together = run(golden, golden.config, false);
    const std::int64_t width = golden.config.hidden_size;
    for (std::int64_t b = 0; b < golden.batch; ++b) {
      CAPTURE(b);
      const Run alone = run(golden, golden.config, false, b);
      const auto same = [&](const Tensor& one, const Tensor& all, std::int64_t rows) {
        return std::memcmp(one.data(), all.data() + b * rows * width, static_cast<std::size_t>(rows * width) * 4) == 0;
      };
      REQUIRE(same(alone.long_states, together.long_states, golden.length));
      REQUIRE(same(alone.global_states, together.global_states, golden.globals));
    }
  }
}

TEST_CASE("one layer with residual scores gives the same numbers as without", "[golden]") {
  for (const auto& path : test::model_files("etc")) {
    const GoldenCase golden(path);
    if (!golden.config.use_residual_attention || golden.config.num_hidden_layers != 1) continue;
    CAPTURE(path.filename().string());
    EtcConfig config = golden.config;
    config.use_residual_attention = false;
    const Run with = run(golden, golden.config, false), without = run(golden, config, false);
    Worst worst;
    const std::vector<double> expected(without.long_states.data(),
                                       without.long_states.data() + without.long_states.size());
    worst.compare("long", expected, with.long_states.data());
    CAPTURE(worst.where);
    REQUIRE(worst.value <= 1e-5);  // scores are rounded to their step of 2^-20
  }
}

TEST_CASE("golden kinds that this program does not compare are named", "[golden]") {
  std::map<std::string, std::vector<std::string>> others;
  for (const auto& path : test::golden_files(".h5")) {
    const test::GoldenFile file(path);
    const std::string kind = file.has_attribute("", "kind") ? file.string_attribute("", "kind") : "none";
    if (kind != "etc" && kind != "fused_attention" && kind != "train") {
      others[kind].push_back(path.filename().string());
    }
  }
  for (const auto& [kind, names] : others) {
    test::skip(fmt::format("golden kind {}: {} (not compared by this program)", kind, fmt::join(names, ", ")));
  }
}
