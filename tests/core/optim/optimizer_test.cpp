#include "etc_core/optim/optimizer.h"

#include <cmath>
#include <cstring>
#include <random>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/sums.h"
#include "etc_core/ops/cpu/squares.h"
#include "etc_core/ops/register.h"
#include "etc_core/optim/schedule.h"
#include "tests/golden/golden_group.h"
#include "tests/reference/update.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/worst.h"

using namespace etc;
using etc::test::GoldenFile;
using Floats = std::vector<float>;

namespace {

[[maybe_unused]] const bool kRegistered = (ops::register_cpu_ops(), true);

// A named parameter with its own memory.
struct Owned {
  std::string name;
  Floats w, g;
  ParamRef ref(bool with_gradient = true) {
    return {name,
            w.data(),
            with_gradient ? g.data() : nullptr,
            static_cast<std::int64_t>(w.size()),
            {static_cast<std::int64_t>(w.size())},
            nullptr};
  }
};

Owned example() {
  return {"layer/kernel", {0.5f, -1, 2}, {0.1f, -0.2f, 0.05f}};
}

void require_near(const Floats& got, const std::vector<double>& expected, double tolerance) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i, got[i], expected[i]);
    REQUIRE(std::abs(static_cast<double>(got[i]) - expected[i]) <= tolerance);
  }
}

Floats random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats values(n);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace

TEST_CASE("AdamW gives the worked example of etc-core 10.4", "[optim]") {
  Owned parameter = example();
  Optimizer optimizer({});
  const ParamRef ref = parameter.ref();
  REQUIRE(optimizer.step({&ref, 1}, 0.01) == std::vector<double>{1});
  require_near(parameter.w, {0.46833722, -0.96828222, 1.96819721}, 2e-7);
  optimizer.step({&ref, 1}, 0.01);
  require_near(parameter.w, {0.42580397, -0.92569423, 1.92552348}, 3e-7);
}

TEST_CASE("LAMB gives the worked example of etc-core 10.4", "[optim]") {
  Owned parameter = example();
  Optimizer optimizer({.kind = OptimizerKind::lamb});
  const ParamRef ref = parameter.ref();
  REQUIRE(optimizer.step({&ref, 1}, 0.01)[0] == Approx(0.41694483).epsilon(1e-6));
  require_near(parameter.w, {0.48679837, -0.98677544, 1.98673999}, 2e-7);
  REQUIRE(optimizer.step({&ref, 1}, 0.01)[0] == Approx(0.30779480).epsilon(1e-6));
  require_near(parameter.w, {0.47370629, -0.97366650, 1.97360467}, 3e-7);
}

TEST_CASE("decay skips layer norms, biases and the scales of ReZero by name, but not the relative vectors", "[optim]") {
  const Optimizer optimizer({.kind = OptimizerKind::lamb});
  const std::string layer = "etc_document_bert/global_local_transformer_layers/fused_att_layer_0/";
  for (const std::string& name : {std::string("bert/encoder/layer_0/output/LayerNorm/beta"),
                                  layer + "layer_norm_0/gamma", std::string("bert/encoder/layer_0/rezero_alpha"),
                                  layer + "fused_global_local_att/long_query_projection/linear/bias",
                                  layer + "fused_global_local_att/global_qkv_attention/relative_bias_table",
                                  std::string("bert/encoder/layer_0/attention/self/relative_position_bias")}) {
    CAPTURE(name);
    REQUIRE_FALSE(optimizer.decays(name));
    REQUIRE_FALSE(optimizer.adapts(name));
  }
  for (const std::string& name :
       {layer + "fused_global_local_att/long_query_projection/linear/kernel",
        layer + "fused_global_local_att/global_qkv_attention/relative_emb_table",
        std::string("etc_document_bert/token_emb_lookup/embedding_table"), std::string("Bias/layernorm"),
        std::string("bert/encoder/layer_0/attention/self/relative_table"),
        std::string("bert/encoder/relative_table")}) {  // the last: T5's biases, which decay like tables
    CAPTURE(name);
    REQUIRE(optimizer.decays(name));
    REQUIRE(optimizer.adapts(name));
  }
}

TEST_CASE("without decay LAMB's exclusions still act, and an own list replaces them", "[optim]") {
  const Optimizer plain({.kind = OptimizerKind::lamb, .weight_decay = 0});
  REQUIRE_FALSE(plain.decays("a/kernel"));
  REQUIRE_FALSE(plain.adapts("a/bias"));
  REQUIRE(plain.adapts("a/kernel"));
  const Optimizer own({.kind = OptimizerKind::lamb, .exclude_from_adaptation = {"kernel"}});
  REQUIRE(own.adapts("a/bias"));
  REQUIRE_FALSE(own.adapts("a/kernel"));
  REQUIRE(own.decays("a/kernel"));
  REQUIRE_FALSE(Optimizer({}).adapts("a/kernel"));  // AdamW
}

TEST_CASE("a parameter without gradient is left untouched and has no moments", "[optim]") {
  Owned used = example(), unused{"unused/kernel", {1, 2}, {0, 0}};
  std::uint64_t used_version = 7, unused_version = 7;
  ParamRef refs[]{used.ref(), unused.ref(false)};
  refs[0].version = &used_version;
  refs[1].version = &unused_version;
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::lamb}) {
    Optimizer optimizer({.kind = kind});
    REQUIRE(optimizer.step(refs, 0.1).size() == 2);
    REQUIRE(unused.w == Floats{1, 2});
    REQUIRE(optimizer.moments().size() == 2);
  }
  REQUIRE(used_version == 9);
  REQUIRE(unused_version == 7);
}

TEST_CASE("a learning rate of 0 changes no weight but starts the moments", "[optim]") {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::lamb}) {
    Owned parameter = example();
    const Floats before = parameter.w;
    Optimizer optimizer({.kind = kind});
    const ParamRef ref = parameter.ref();
    optimizer.step({&ref, 1}, 0);
    REQUIRE(parameter.w == before);
    REQUIRE(optimizer.moments().at("layer/kernel/adam_m").data()[0] == Approx(0.01f));
  }
}

TEST_CASE("a zero weight or a zero update has a trust ratio of 1", "[optim]") {
  Owned zero_weight{"a/kernel", {0, 0}, {1, -1}}, zero_update{"b/kernel", {1, 1}, {0, 0}};
  const ParamRef refs[]{zero_weight.ref(), zero_update.ref()};
  Optimizer optimizer({.kind = OptimizerKind::lamb, .weight_decay = 0});
  REQUIRE(optimizer.step(refs, 0.1) == std::vector<double>{1, 1});
  REQUIRE(zero_update.w == Floats{1, 1});
}

TEST_CASE("large parameters of awkward sizes follow the formulas", "[optim]") {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::lamb}) {
    for (std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{16384}, std::size_t{40001}}) {
      CAPTURE(n);
      Owned parameter{"a/kernel", random_floats(n, 1), random_floats(n, 2)};
      test::ReferenceUpdate naive{
          .decay = 0.1, .w = {parameter.w.begin(), parameter.w.end()}, .m = test::Reals(n), .v = test::Reals(n)};
      const test::Reals g = test::reference_scale(0.25, {parameter.g.begin(), parameter.g.end()});
      Optimizer optimizer({.kind = kind, .weight_decay = 0.1});
      const ParamRef ref = parameter.ref();
      for (int step = 0; step < 5; ++step) {
        const double ratio = optimizer.step({&ref, 1}, 0.01, 0.25)[0];
        const double expected = naive.step(g, 0.01, kind == OptimizerKind::lamb);
        REQUIRE(ratio == Approx(expected).epsilon(1e-6));
      }
      // A step moves w by at most 0.01·(3.2 + 0.1|w|), each with a few roundings of 2^-24 relative to |w| < 6 and to
      // it.
      require_near(parameter.w, naive.w, 5 * 4 * 6 * 0x1p-24);
    }
  }
}

TEST_CASE("the global norm counts every gradient once and skips absent ones", "[optim]") {
  Owned a{"a", {0, 0}, {3, 0}}, b{"b", {0}, {4}}, c{"c", {0}, {100}};
  const ParamRef refs[]{a.ref(), b.ref(), c.ref(false)};
  REQUIRE(global_norm(refs) == 5);
  REQUIRE(global_norm({}) == 0);
  Owned large{"a", Floats(100001), Floats(100001, 0.5f)};
  const ParamRef ref = large.ref();
  REQUIRE(global_norm({&ref, 1}) == Approx(0.5 * std::sqrt(100001.0)).epsilon(1e-14));
}

TEST_CASE("clipping shrinks large gradients and leaves small ones alone", "[optim]") {
  REQUIRE(clip_scale(0.5, 1) == 1);
  REQUIRE(clip_scale(4, 1) == 0.25);
  REQUIRE(clip_scale(4, 0) == 1);  // off
  REQUIRE(clip_scale(0, 1) == 1);
  REQUIRE_THROWS_WITH(clip_scale(std::nan(""), 1), "optimizer: the norm of the gradient is nan: expected a number");
  REQUIRE_THROWS_AS(clip_scale(INFINITY, 0), Error);
}

TEST_CASE("a step has the same bits for 1, 2 and 4 threads", "[optim]") {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::lamb}) {
    std::vector<Floats> results;
    std::vector<double> norms;
    for (int threads : {1, 2, 4}) {
      set_thread_count(threads);
      Owned a{"a/kernel", random_floats(70001, 3), random_floats(70001, 4)};
      Owned b{"b/bias", random_floats(31, 5), random_floats(31, 6)};
      const ParamRef refs[]{a.ref(), b.ref()};
      Optimizer optimizer({.kind = kind});
      norms.push_back(global_norm(refs));
      for (int step = 0; step < 3; ++step) optimizer.step(refs, 0.01, clip_scale(norms.back(), 1));
      a.w.insert(a.w.end(), b.w.begin(), b.w.end());
      results.push_back(a.w);
    }
    set_thread_count(2);
    for (std::size_t i : {1, 2}) {
      REQUIRE(norms[i] == norms[0]);
      REQUIRE(std::memcmp(results[i].data(), results[0].data(), results[0].size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("saved moments continue with the same bits", "[optim]") {
  Owned straight = example(), resumed = example();
  const ParamRef a = straight.ref(), b = resumed.ref();
  Optimizer optimizer({}), first({}), second({});
  for (int step = 0; step < 4; ++step) optimizer.step({&a, 1}, 0.01);
  first.step({&b, 1}, 0.01);
  first.step({&b, 1}, 0.01);
  std::map<std::string, Tensor> saved;
  for (const auto& [name, tensor] : first.moments()) saved[name] = tensor.clone();
  REQUIRE(saved.count("layer/kernel/adam_m") == 1);
  REQUIRE(saved.count("layer/kernel/adam_v") == 1);
  REQUIRE(saved.size() == 2);
  second.set_moments(saved, {&b, 1});
  second.step({&b, 1}, 0.01);
  second.step({&b, 1}, 0.01);
  REQUIRE(straight.w == resumed.w);
}

TEST_CASE("moments that do not fit the parameters are errors and change nothing", "[optim]") {
  Owned parameter = example();
  const ParamRef ref = parameter.ref();
  Optimizer optimizer({});
  optimizer.step({&ref, 1}, 0.01);
  const Tensor good = Tensor::zeros({3}, Purpose::moments), bad = Tensor::zeros({1, 3}, Purpose::moments);
  const std::string m = "layer/kernel/adam_m", v = "layer/kernel/adam_v";
  REQUIRE_THROWS_WITH(optimizer.set_moments({{m, good}}, {&ref, 1}),
                      "optimizer: layer/kernel: expected adam_m and adam_v, got only one of them");
  REQUIRE_THROWS_WITH(optimizer.set_moments({{m, good}, {v, bad}}, {&ref, 1}),
                      "optimizer: layer/kernel/adam_v must have its parameter's shape: expected [3], got [1, 3]");
  REQUIRE_THROWS_WITH(optimizer.set_moments({{m, good}, {v, good}, {"gone/adam_m", good}}, {&ref, 1}),
                      "optimizer: gone/adam_m [3] belongs to no parameter");
  REQUIRE(optimizer.moments().at(m).data()[0] != 0);
}

TEST_CASE("moments are charged to their purpose in the memory ledger", "[optim]") {
  const auto held = [] { return memory_ledger::report().current[static_cast<int>(Purpose::moments)]; };
  const auto before = held();
  Owned parameter{"a/kernel", Floats(1024), Floats(1024)};
  const ParamRef ref = parameter.ref();
  Optimizer optimizer({});
  optimizer.step({&ref, 1}, 0.01);
  REQUIRE(held() - before == 2 * 1024 * 4);
}

TEST_CASE("impossible arguments of an optimiser are errors", "[optim]") {
  REQUIRE_THROWS_WITH(optimizer_kind("adamv"),
                      "optimizer: expected adamw, lamb or radam, got adamv (did you mean adamw?)");
  REQUIRE_THROWS_AS(optimizer_kind("sgd"), UsageError);
  REQUIRE(optimizer_kind("adamw") == OptimizerKind::adamw);
  REQUIRE(optimizer_kind("lamb") == OptimizerKind::lamb);
  REQUIRE_THROWS_WITH(Optimizer({.beta_1 = 1}), "optimizer: beta_1: expected 0 <= beta_1 < 1, got 1");
  REQUIRE_THROWS_AS(Optimizer({.weight_decay = -0.1}), UsageError);
  for (const double small : {0.0, 1e-40}) {
    REQUIRE_THROWS_WITH(Optimizer({.epsilon = small}), Catch::Contains("epsilon: expected 1e-37 <= epsilon < 1"));
  }
  Owned parameter = example();
  const ParamRef twice[]{parameter.ref(), parameter.ref()};
  Optimizer optimizer({});
  REQUIRE_THROWS_WITH(optimizer.step(twice, 0.1), "optimizer: layer/kernel is given twice");
  ParamRef longer = parameter.ref();
  longer.size = 4;
  REQUIRE_THROWS_WITH(optimizer.step({&longer, 1}, 0.1),
                      "optimizer: layer/kernel must match its moments: 4 numbers, moments [3]");
}

TEST_CASE("sums of squares have the same bits in vectors of any width, and sums pair neighbours", "[optim]") {
  for (const std::size_t n : {0, 1, 7, 8, 9, 15, 16, 17, 31, 40, 100003}) {
    const Floats values = random_floats(n, static_cast<unsigned>(n));
    double expected[ops::cpu::kSquareSums] = {}, plain = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double value = values[i];
      expected[i % ops::cpu::kSquareSums] += value * value;
      plain += value * value;
    }
    const double sum = ops::cpu::sum_of_squares(values.data(), static_cast<std::int64_t>(n));
    REQUIRE(sum == pairwise_sum(expected));
    REQUIRE(sum == Approx(plain).epsilon(1e-12));
  }
  const std::vector<double> sixths{1e100, 1, -1e100, 0, 3, 4};
  REQUIRE(pairwise_sum(sixths) == 7);  // ((1e100+1) + (-1e100+0)) + (3+4): the 1 is lost in its pair
}

namespace {

OptimizerOptions options_of(const GoldenFile& file) {
  OptimizerOptions options{.kind = optimizer_kind(file.string_attribute("", "optimizer")),
                           .beta_1 = file.real_attribute("", "beta_1"),
                           .beta_2 = file.real_attribute("", "beta_2"),
                           .epsilon = file.real_attribute("", "epsilon"),
                           .weight_decay = file.real_attribute("", "weight_decay_rate"),
                           .exclude_from_decay = {}};
  std::string words = file.string_attribute("", "exclude_from_weight_decay") + ",";
  for (std::size_t comma; (comma = words.find(',')) != std::string::npos; words.erase(0, comma + 1)) {
    if (comma > 0) options.exclude_from_decay.push_back(words.substr(0, comma));
  }
  return options;
}

// The parameters before the first step. Names are paths below the groups.
std::vector<Owned> initial_parameters(const GoldenFile& file) {
  std::vector<Owned> parameters;
  const std::function<void(const std::string&)> collect = [&](const std::string& group) {
    for (const std::string& data_set : file.data_sets("initial" + group)) {
      const std::string name = (group + "/" + data_set).substr(1);
      parameters.push_back({name, file.read<float>("initial/" + name).values, {}});
      parameters.back().g.resize(parameters.back().w.size());
    }
    for (const std::string& name : file.groups("initial" + group)) collect(group + "/" + name);
  };
  collect("");
  return parameters;
}

// Every array has an entry for each step.
void require_steps(const std::filesystem::path& path) {
  const GoldenFile file(path);  // whose reads do not count as comparisons
  const std::int64_t steps = file.int_attribute("", "num_steps");
  const std::function<void(const std::string&)> check = [&](const std::string& group) {
    for (const std::string& name : file.data_sets(group)) {
      CAPTURE(group, name);
      const auto array = file.read<double>(group + "/" + name);
      REQUIRE(array.shape.at(0) == steps);
      // Those of parameters have as many numbers for each step as the parameter.
      const std::string parameter = "initial" + group.substr(std::min(group.find('/', 1), group.size())) + "/" + name;
      const bool scalar = group.empty() || group.starts_with("/trust_ratio");
      const auto size = scalar ? 1 : std::ssize(file.read<double>(parameter).values);
      REQUIRE(std::ssize(array.values) == steps * size);
    }
    for (const std::string& name : file.groups(group)) {
      if (name != "initial") check(group + "/" + name);
    }
  };
  check("");
}

LearningRateSchedule rates_of(const GoldenFile& file) {
  LearningRateSchedule schedule{.initial_rate = file.real_attribute("", "init_lr"),
                                .total_steps = file.int_attribute("", "num_train_steps"),
                                .warmup_steps = file.int_attribute("", "num_warmup_steps")};
  if (file.has_attribute("", "poly_power")) schedule.power = file.real_attribute("", "poly_power");
  if (file.has_attribute("", "start_warmup_step")) {
    schedule.start_warmup_step = file.int_attribute("", "start_warmup_step");
  }
  return schedule;
}

// The parameters, with gradients of this step for those that have one.
std::vector<ParamRef> refs_of_step(const GoldenFile& file, std::vector<Owned>& parameters, std::size_t step) {
  std::vector<ParamRef> refs;
  for (Owned& parameter : parameters) {
    const std::string gradients = "grads/" + parameter.name;
    const bool has_gradient = file.has(gradients);
    if (has_gradient) {
      const auto all = file.read<float>(gradients).values;
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(step * parameter.w.size());
      std::copy(begin, begin + static_cast<std::ptrdiff_t>(parameter.w.size()), parameter.g.begin());
    }
    refs.push_back(parameter.ref(has_gradient));
  }
  return refs;
}

// Compares with folder/name [steps, size] after a step.
void require_equal(const GoldenFile& file, const std::string& folder, const Owned& parameter, std::size_t step,
                   const float* got, double absolute, double of_largest) {
  const std::size_t size = parameter.w.size();
  CAPTURE(folder, parameter.name, step);
  const auto all = file.read<float>(folder + "/" + parameter.name).values;
  double largest = 0;
  for (const float value : all) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < size; ++i) {
    const double expected = all[step * size + i], value = got[i];
    CAPTURE(i, value, expected);
    REQUIRE(std::abs(value - expected) <= absolute + of_largest * largest);
  }
}

void require_state(const GoldenFile& file, const Owned& parameter, std::size_t step, const Optimizer& optimizer,
                   double ratio) {
  // The error here may be twice that of the reference's own fp32 against double, and the reference's error adds to it.
  const double off_by_itself = file.real_attribute("", "f32_minus_f64_weights_after_last_step");
  REQUIRE(off_by_itself < 1e-6);
  const double weight_tolerance = 3 * off_by_itself;
  // Relative to the tensor's largest: per step three roundings for m or v and one or two for the clipped gradient,
  // on both sides.
  const double moment_tolerance = 2 * 5 * static_cast<double>(step + 1) * 0x1p-24;
  const auto moments = optimizer.moments();
  require_equal(file, "weights", parameter, step, parameter.w.data(), weight_tolerance, 0);
  if (!file.has("grads/" + parameter.name)) {
    REQUIRE(moments.count(parameter.name + "/adam_m") == 0);
    return;
  }
  for (const std::string folder : {"adam_m", "adam_v"}) {
    const float* got = moments.at(parameter.name + "/" + folder).data();
    require_equal(file, folder, parameter, step, got, 0, moment_tolerance);
  }
  const std::string ratios = "trust_ratio/" + parameter.name;
  if (file.string_attribute("", "optimizer") != "lamb") return;
  REQUIRE(ratio == Approx(file.read<float>(ratios).values.at(step)).epsilon(1e-5));
}

}  // namespace

TEST_CASE("optimiser steps equal the reference's", "[optim][golden]") {
  const auto paths = test::golden_files_of_kind("optimizer");
  if (paths.empty()) return test::skip("no golden file of kind optimizer");
  for (const auto& path : paths) {
    const GoldenFile file(path);
    CAPTURE(path);
    const LearningRateSchedule schedule = rates_of(file);
    const double clip_norm = file.real_attribute("", "clip_norm");
    std::vector<Owned> parameters = initial_parameters(file);
    REQUIRE_FALSE(parameters.empty());
    require_steps(path);
    Optimizer optimizer(options_of(file));
    const auto rates = file.read<float>("lr").values, norms = file.read<float>("grad_global_norm").values;
    const auto steps = file.read<std::int64_t>("global_step").values;
    REQUIRE(std::ssize(steps) == file.int_attribute("", "num_steps"));
    for (std::size_t step = 0; step < steps.size(); ++step) {
      CAPTURE(step);
      REQUIRE(steps[step] == static_cast<std::int64_t>(step));  // updates before this one
      const std::vector<ParamRef> refs = refs_of_step(file, parameters, step);
      const double rate = learning_rate(schedule, static_cast<std::int64_t>(step)), norm = global_norm(refs);
      REQUIRE(rate == Approx(rates[step]).epsilon(1e-6).margin(1e-12));
      REQUIRE(norm == Approx(norms[step]).epsilon(1e-6));
      const std::vector<double> ratios = optimizer.step(refs, rate, clip_scale(norm, clip_norm));
      for (std::size_t p = 0; p < parameters.size(); ++p)
        require_state(file, parameters[p], step, optimizer, ratios[p]);
    }
    file.require_all_read();
  }
}

namespace {

// The largest difference of RAdam's weights from the file's, in units of the README's tolerance 2e-5 + 2e-5·|w|.
double radam_difference(const GoldenFile& file, double falsified) {
  const auto setting = [&](const char* name) { return file.real_attribute("radam", name); };
  OptimizerOptions options{.kind = OptimizerKind::radam,
                           .beta_1 = setting("beta1"),
                           .beta_2 = setting("beta2"),
                           .epsilon = setting("eps"),
                           .weight_decay = setting("weight_decay")};
  Optimizer optimizer(options);
  const Floats all = file.read<float>("radam/grads").values;
  const auto expected = file.read<double>("radam/w").values;
  Owned parameter{"layer/kernel", file.read<float>("radam/w0").values, {}};
  const std::size_t size = parameter.w.size();
  REQUIRE(all.size() == expected.size());
  REQUIRE(all.size() == size * file.read<double>("radam/rho").values.size());
  double worst = 0;
  for (std::size_t first = 0; first < all.size(); first += size) {
    const Floats before = parameter.w;
    parameter.g.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                       all.begin() + static_cast<std::ptrdiff_t>(first + size));
    optimizer.step(std::vector{parameter.ref()}, setting("lr"));
    for (std::size_t i = 0; i < size; ++i) {
      const double e = expected[first + i] * falsified;
      test::keep_worst(worst, test::in_tolerances(static_cast<double>(parameter.w[i]), e, 2e-5, 2e-5));
    }
    if (first / size >= 5) continue;
    for (std::size_t i = 0; i < size; ++i) {  // while ρ is below 5, weights only decay
      REQUIRE(parameter.w[i] == Approx(before[i] * (1 - setting("weight_decay") * setting("lr"))).epsilon(1e-6));
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("RAdam has the weights of the formulas, and does nothing but decay in its first five updates",
          "[optim][golden]") {
  test::for_each_file_with("radam/w0", [](const GoldenFile& file) {
    CHECK(radam_difference(file, 1) <= 1);
    CHECK(radam_difference(file, 1.001) > 1);
    CHECK(radam_difference(file, std::nan("")) > 1);
    const double beta_1 = file.real_attribute("radam", "beta1"), beta_2 = file.real_attribute("radam", "beta2");
    const double limit = 2 / (1 - beta_2) - 1;  // ρ_∞
    const auto rho = file.read<double>("radam/rho").values;
    for (std::size_t i = 0; i < rho.size(); ++i) {
      CAPTURE(i);
      const auto t = static_cast<double>(i + 1);
      const double p = std::pow(beta_2, t), r = rho[i];
      CHECK(r == Approx(limit - 2 * t * p / (1 - p)).epsilon(1e-6));
      const double rectified = (1 - p) * (r - 4) * (r - 2) * limit / ((limit - 4) * (limit - 2) * r);
      const double factor = r < 5 ? 0 : std::sqrt(rectified) / (1 - std::pow(beta_1, t));
      CHECK(radam_factor(beta_1, beta_2, static_cast<std::int64_t>(i + 1)) == Approx(factor).epsilon(1e-6));
    }
    file.require_all_read("radam");
  });
}

TEST_CASE("RAdam's factor is the worked example's, and updates go on where a run stopped", "[optim]") {
  CHECK(radam_factor(0.9, 0.98, 5) == 0);
  CHECK(radam_factor(0.9, 0.98, 6) * (1 - std::pow(0.9, 6)) / std::sqrt(1 - std::pow(0.98, 6)) ==
        Approx(0.115523).epsilon(1e-5));
  const OptimizerOptions options{.kind = optimizer_kind("radam"), .beta_2 = 0.98};
  Optimizer idle({.kind = OptimizerKind::radam, .beta_2 = 0.98, .weight_decay = 0});
  Owned untouched = example();
  for (int i = 0; i < 5; ++i) idle.step(std::vector{untouched.ref()}, 0.1);
  CHECK(untouched.w == example().w);
  idle.step(std::vector{untouched.ref()}, 0.1);
  CHECK(untouched.w != example().w);
  Optimizer whole(options), first(options), second(options);
  Owned one = example(), two = example();
  for (int i = 0; i < 9; ++i) whole.step(std::vector{one.ref()}, 0.1);
  for (int i = 0; i < 4; ++i) first.step(std::vector{two.ref()}, 0.1);
  second.set_moments(first.moments(), std::vector{two.ref()});
  second.set_updates(first.updates());
  for (int i = 0; i < 5; ++i) second.step(std::vector{two.ref()}, 0.1);
  CHECK(one.w == two.w);
}

TEST_CASE("RAdam's first updates decay no parameter that is excluded from decay", "[optim]") {
  Optimizer optimizer({.kind = OptimizerKind::radam, .weight_decay = 0.1});
  Owned kernel = example(), bias = example();
  bias.name = "layer/bias";
  const Floats before = bias.w;
  optimizer.step(std::vector{kernel.ref(), bias.ref()}, 0.5);
  CHECK(bias.w == before);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(kernel.w[i] == Approx(before[i] * 0.95f));
}
