// One fused attention sub-layer against the published implementation: the projections and operators the model uses,
// with sizes, sharing, masks, ids and carried scores of every group of the golden files of kind `fused_attention`.
#include <cmath>
#include <map>
#include <memory>

#include "etc_core/autograd/attention.h"
#include "etc_core/base/error.h"
#include "etc_core/nn/backends.h"
#include "sparse/etc_attention.h"
#include "tests/core/tensor_values.h"
#include "tests/golden/golden_group.h"
#include "tests/golden/golden_run.h"
#include "tests/support/catch.h"
#include "tests/support/import_scores.h"

using namespace etc;
using test::GoldenFile;
using test::GoldenReport;
using test::GradientDifference;
using test::Worst;

namespace {

const std::string kTypes[] = {"l2l", "l2g", "g2g", "g2l"};

// What the engine computes for a group, under the file's names.
struct FusedRun {
  test::NamedNumbers outputs, scores, gradients;
};

class FusedAttention {
 public:
  FusedAttention(const GoldenFile& file, const std::string& group)
      : file_(file),
        prefix_(group + "/"),
        batch_(integer("batch")),
        length_(integer("long_len")),
        globals_(integer("global_len")),
        radius_(integer("local_radius")),
        heads_(integer("num_heads")),
        labels_(integer("relative_vocab_size")),
        masks_(file, prefix_ + "inputs", radius_, batch_, length_, globals_) {
    for (const std::string& name : test::data_sets_below(file, prefix_ + "weights")) {
      const auto shape = file.read<float>(prefix_ + "weights/" + name).shape;
      parameters_.add(name, shape, {Initializer::Kind::zeros, 0});
    }
    test::load_golden_weights(file, prefix_ + "weights", parameters_);
    residual_ = file.has_attribute(group, "residual");
    if (!residual_) return;
    const std::string kind = file.string_attribute(group, "residual");
    if (kind != "mean" && kind != "sum") fail(group, "residual: expected mean or sum, got {}", kind);
    layer_ = integer("layer_index");
    carries_ = layer_ > 0 || file.has(prefix_ + "inputs/prev_scores_l2l");
    // The engine has no scores before its first layer. A mean over one layer is the sum.
    mean_ = kind == "mean" && layer_ > 0;
    if (carries_) layer_ = std::max<std::int64_t>(layer_, 1);
  }

  // Each argument collects the differences of its kind.
  void compare(const FusedRun& run, Worst& outputs, Worst& scores, GradientDifference& gradients) const {
    for (const std::string group : {"outputs", "outputs64"}) {  // in both precisions of the file
      for (const std::string& name : test::data_sets_below(file_, prefix_ + group)) {
        const bool is_score = name.starts_with("scores_");
        const test::NamedNumbers& ours = is_score ? run.scores : run.outputs;
        if (ours.count(name) == 0) fail(prefix_ + group, "{}: not computed", name);
        const std::string path = prefix_ + group + "/" + name;
        (is_score ? scores : outputs).compare(path, file_.read<double>(path).values, ours.at(name));
        if (is_score) test::require_zero_outside(file_, masks_, name.substr(7), path);
      }
    }
    for (const auto* ours : {&run.outputs, &run.scores}) {
      for (const auto& [name, values] : *ours) {
        if (!file_.has(prefix_ + "outputs/" + name)) fail(prefix_ + "outputs", "{} is absent", name);
      }
    }
    if (!run.gradients.empty()) compare_gradients(run.gradients, gradients);
  }

  // Runs forward and, if recording, backward.
  FusedRun run(bool recording) {
    check_sizes();
    FusedRun run;
    const Var of_long(states("long", length_), recording), of_global(states("global", globals_), recording);
    Tape tape(recording ? Recording::on : Recording::off);
    const std::int64_t long_size = dense("long_query").out(), global_size = global_query().out();
    // The two sides may have heads of different sizes, so each operator has its own batch description.
    const auto long_batch = batch(long_size / heads_, recording, run),
               global_batch = batch(global_size / heads_, recording, run);
    const bool share_qkv = flag("share_qkv_projections"), share_kv = flag("share_kv_projections");
    const auto kv = [&](const char* own, const char* shared) { return share_qkv ? "l2l" : share_kv ? shared : own; };
    const auto keys = [&](const Var& x, const std::string& type) {
      return KeyColumns{{linear(tape, x, dense(type + "_key")), 0}, {linear(tape, x, dense(type + "_value")), 0}};
    };
    const Columns q = {linear(tape, of_long, dense("long_query")), 0};
    const Columns gq = {linear(tape, of_global, global_query()), 0};
    std::vector<Var> results = {attention(tape, sparse::kLongAttention, long_batch, layer_, Pass::forward,
                                          {q,
                                           {keys(of_long, "l2l"), keys(of_global, kv("l2g", "l2l"))},
                                           tables("long_qkv_attention/qkv_relative_attention")}),
                                attention(tape, sparse::kGlobalAttention, global_batch, layer_, Pass::forward,
                                          {gq,
                                           {keys(of_global, kv("g2g", "g2g")), keys(of_long, kv("g2l", "g2g"))},
                                           tables("global_qkv_attention")})};
    results[0] = linear(tape, results[0], single("long_output_projection"));
    results[1] =
        linear(tape, results[1],
               single(flag("share_att_output_projection") ? "long_output_projection" : "global_output_projection"));
    const char* names[] = {"long", "global"};
    for (std::size_t side = 0; side < 2; ++side) run.outputs[names[side]] = test::values_of(results[side].value());
    for (int type = 0; residual_ && type < 4; ++type) {
      const std::vector<float> carried = external(*(type < 2 ? long_batch : global_batch), type, false);
      test::set_visible(masks_, heads_, kTypes[type], carried, run.scores["scores_" + kTypes[type]]);
    }
    if (!recording) return run;
    for (std::size_t side = 0; side < 2; ++side) {
      const auto w = file_.read<float>(prefix_ + "loss/W_" + names[side]).values;
      REQUIRE(std::ssize(w) == results[side].value().size());
      std::copy(w.begin(), w.end(), results[side].grad().data());
    }
    results.clear();
    tape.backward();
    run.gradients["inputs_long"] = test::values_of(of_long.gradient()->tensor());
    run.gradients["inputs_global"] = test::values_of(of_global.gradient()->tensor());
    for (const auto& parameter : parameters_.all()) {
      if (parameter->grad) run.gradients["weights/" + parameter->name] = test::values_of(parameter->grad);
    }
    for (int type = 0; carries_ && type < 4; ++type) {
      const std::vector<float> gradient = external(*(type < 2 ? long_batch : global_batch), type, true);
      run.gradients["prev_scores_" + kTypes[type]] =
          test::scores_as(test::ScoreForm::file, gradient, kTypes[type], batch_, heads_);
    }
    return run;
  }

 private:
  std::int64_t integer(const std::string& name) const { return file_.int_attribute(prefix_, name); }
  bool flag(const std::string& name) const { return integer(name) != 0; }

  // The sizes that the arrays have in any case.
  void check_sizes() {
    const std::int64_t total = integer("total_att_size");
    const std::int64_t long_hidden = integer("long_hidden_size"), global_hidden = integer("global_hidden_size");
    REQUIRE(file_.read<float>(prefix_ + "inputs/long").shape.at(2) == long_hidden);
    REQUIRE(file_.read<float>(prefix_ + "inputs/global").shape.at(2) == global_hidden);
    REQUIRE(dense("long_query").out() == (total > 0 ? total : long_hidden));
    REQUIRE(global_query().out() == (total > 0 ? total : global_hidden));
  }

  // The scores before this layer, in the file's form; empty: none.
  std::vector<float> scores_before(const std::string& type) const {
    if (!carries_) return {};
    test::require_zero_outside(file_, masks_, type, prefix_ + "inputs/prev_scores_" + type);
    return file_.read<float>(prefix_ + "inputs/prev_scores_" + type).values;
  }

  Tensor states(const std::string& side, std::int64_t rows) const {
    const auto array = file_.read<float>(prefix_ + "inputs/" + side);
    return Tensor::from(array.values, {batch_ * rows, array.shape.at(2)}, Purpose::activations);
  }
  Dense single(const std::string& name) {
    const std::string full = "fused_global_local_att/" + name;
    Dense result;
    result.parts = {{&parameters_.at(full + "/kernel"), &parameters_.at(full + "/bias")}};
    return result;
  }
  Dense dense(const std::string& name) { return single(name + "_projection/linear"); }
  Dense global_query() { return dense(flag("share_qkv_projections") ? "long_query" : "global_query"); }
  RelativeParameters tables(const std::string& name) {
    const std::string full = "fused_global_local_att/" + name;
    return {parameters_.find(full + "/relative_emb_table"), parameters_.find(full + "/relative_bias_table")};
  }

  // Its attention adds the scores of all pairs to the run, which must live as long.
  std::shared_ptr<AttentionBatch> batch(std::int64_t head_size, bool recording, FusedRun& run) const {
    auto result = std::make_shared<AttentionBatch>();
    const sparse::AttentionLabels labels = masks_.labels(radius_, labels_);
    std::vector<std::int64_t> long_offsets, global_offsets;
    for (std::int64_t b = 0; b <= batch_; ++b) {
      long_offsets.push_back(b * length_);
      global_offsets.push_back(b * globals_);
    }
    sparse::LabelTensors tensors;
    tensors.examples = batch_;
    tensors.long_offsets = long_offsets.data();
    tensors.global_offsets = global_offsets.data();
    tensors.radius = radius_;
    tensors.relative_labels = labels.long_relative ? labels_ : 0;
    tensors.l2l = labels.l2l.data();
    tensors.l2g = labels.l2g.data();
    tensors.g2g = labels.g2g.data();
    tensors.g2l = labels.g2l.data();
    result->operators.push_back({sparse::build_long_tiles(tensors), labels.long_relative});
    result->operators.push_back({sparse::build_global_tiles(tensors), labels.global_relative});
    result->heads = heads_;
    result->head_size = head_size;
    if (residual_) {
      sparse::ScoreOptions options;
      options.layers = layer_ + 1;
      options.heads = heads_;
      options.types = {true, true, true, true};
      options.running_mean = mean_;
      options.training = recording;
      options.keep_last = true;
      result->scores.emplace(options, result->scored_operators());
      if (carries_) {
        std::vector<std::vector<float>> before;
        for (const auto& type : kTypes) {
          before.push_back(test::scores_as(test::ScoreForm::engine, scores_before(type), type, batch_, heads_));
        }
        test::import_running(*result->scores, result->scored_operators(), heads_, layer_ - 1, before);
      }
      result->watch = [this, &run](const WatchedAttention& watched) {
        for (int set = 0; set < sparse::kKeySets; ++set) {
          const std::string type = watched.inputs.tiles->op->types[set].name;
          run.scores["scores_" + type] = test::running_scores(masks_, watched.inputs, set, scores_before(type));
        }
      };
    }
    return result;
  }

  // C, or dC, of one type in the engine's form.
  std::vector<float> external(const AttentionBatch& batch, int type, bool gradient) const {
    const auto index = static_cast<std::size_t>(type);
    const sparse::TypeTiles& tiles = batch.operators[index / 2].tiles.types[index % 2];
    std::vector<float> values(static_cast<std::size_t>(sparse::external_score_elements(tiles, heads_)));
    if (gradient) {
      batch.scores->export_gradient(tiles.type, values.data());
    } else {
      batch.scores->export_running(tiles.type, values.data());
    }
    return values;
  }

  void compare_gradients(const test::NamedNumbers& ours, GradientDifference& difference) const {
    for (const std::string group : {"grads", "grads64"}) {  // in both precisions, where the file has them
      if (group == "grads64" && !file_.has(prefix_ + group)) continue;
      std::map<std::string, std::vector<double>> expected;
      for (const std::string& name : test::data_sets_below(file_, prefix_ + group)) {
        expected[name] = file_.read<double>(prefix_ + group + "/" + name).values;
      }
      difference.compare(expected, ours, prefix_ + group + "/");
    }
  }

  const GoldenFile& file_;
  std::string prefix_;
  std::int64_t batch_, length_, globals_, radius_, heads_, labels_, layer_ = 0;
  bool residual_ = false, carries_ = false, mean_ = false;
  test::GoldenMasks masks_;
  ParameterSet parameters_;
};

}  // namespace

TEST_CASE("a fused attention sub-layer is that of the published model", "[golden]") {
  register_cpu_backend();
  const auto files = test::model_files("fused_attention");
  if (files.empty()) return;
  GoldenReport report("golden fused_attention: worst difference (outputs, scores: absolute; gradients: relative)",
                      {"outputs", "scores", "gradients"});
  GradientDifference all;
  for (const auto& path : files) {
    const GoldenFile file(path);
    test::require_groups(file, "", {"plain", "residual_mean", "residual_sum"});
    for (const std::string& group : file.groups()) {
      CAPTURE(path.filename().string(), group);
      FusedAttention golden(file, group);
      Worst outputs, scores;
      GradientDifference gradients;
      golden.compare(golden.run(false), outputs, scores, gradients);
      golden.compare(golden.run(true), outputs, scores, gradients);
      report.row(path.stem().string() + "/" + group, {outputs.value, scores.value, gradients.worst.value});
      CAPTURE(outputs.where, scores.where, gradients.worst.where);
      CHECK(outputs.value <= 1e-5);
      CHECK(scores.value <= 1e-5);
      CHECK(gradients.worst.value <= GradientDifference::kTolerance);
      all.add(gradients);
    }
    file.require_all_read();
  }
  all.print();
}
