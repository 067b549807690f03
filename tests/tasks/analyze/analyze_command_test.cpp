// etc analyze: output files, messages and refused input.
#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/attention_analysis.h"
#include "etc_core/nn/backends.h"
#include "tasks/analyze/model_analysis.h"
#include "tasks/feed/features.h"
#include "tasks/train/evaluate.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/xml.h"
#include "tests/tasks/train/place.h"

namespace {

namespace fs = std::filesystem;
using etc::test::has;
using etc::test::joined;
using etc::test::Place;
using etc::test::Result;
using etc::test::Words;

// A Place with a model of two layers with residual scores.
struct Scene : Place {
  fs::path model = folder / "run/best", data = folder / "train.h5", output = folder / "analysis";

  explicit Scene(const Words& more = {"--num-hidden-layers", "2"}) {
    train(
        joined({"--use-residual-attention", "--relative-pos-max-distance", "4", "--relative-vocab-size", "12"}, more));
  }
  Result analyze(const Words& more = {}) const {
    return run(joined({"analyze", "--model", model, "--data", data, "--output", output}, more));
  }
};

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), folder));
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("analyze writes numbers, tables and pictures, equal for any thread count", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  const Result result = scene.analyze({"--examples", "12", "--all-heads", "--threads", "1"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(has(result.out, "12 examples"));
  CHECK(!etc::test::GoldenFile(scene.output / "analysis.h5").has("jsd_distance"));
  CHECK(has(result.out, "output: " + scene.output.string()));
  const auto files = files_below(scene.output);
  CHECK(files == std::vector<std::string>{"analysis.h5",
                                          "best_match.csv",
                                          "carry_global.svg",
                                          "carry_long.svg",
                                          "distance_mass.csv",
                                          "distance_mass_g2g.svg",
                                          "distance_mass_l2l.svg",
                                          "entropy_global.svg",
                                          "entropy_long.svg",
                                          "first_tokens.svg",
                                          "label_mass.csv",
                                          "label_mass_g2g.svg",
                                          "label_mass_g2l.svg",
                                          "label_mass_l2g.svg",
                                          "label_mass_l2l.svg",
                                          "mass_global.svg",
                                          "mass_long.svg",
                                          "relative_global_biases.svg",
                                          "relative_global_vectors.svg",
                                          "relative_long_biases.svg",
                                          "relative_long_vectors.svg",
                                          "relative_sizes_global_biases.svg",
                                          "relative_sizes_global_vectors.svg",
                                          "relative_sizes_long_biases.svg",
                                          "relative_sizes_long_vectors.svg",
                                          "relative_tables.csv",
                                          "statistics.csv",
                                          "summary.json",
                                          "violins_entropy_global.svg",
                                          "violins_entropy_long.svg",
                                          "violins_jsd_global.svg",
                                          "violins_jsd_long.svg"});
  for (const std::string& name : files) {
    const std::string text = etc::read_file(scene.output / name);
    CAPTURE(name);
    CHECK(!text.empty());
    if (name.ends_with(".svg")) CHECK(etc::test::xml_elements(text).size() > 10);
  }
  const fs::path again = scene.folder / "again";
  REQUIRE(scene
              .run({"analyze", "--model", scene.model, "--data", scene.data, "--output", again, "--examples", "12",
                    "--all-heads", "--threads", "3"})
              .code == 0);
  for (const std::string& name : files) {
    CAPTURE(name);
    CHECK(etc::read_file(scene.output / name) == etc::read_file(again / name));
  }
}

TEST_CASE("means of analysis.h5 are those of every example's tokens", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  REQUIRE(scene.analyze({"--examples", "7", "--seed", "5", "--groups", "all", "question"}).code == 0);
  etc::register_cpu_backend();
  const etc::LoadedModel loaded = etc::load_model(scene.model);
  loaded.model->encoder->release_kernels();
  const auto reader = etc::open_dataset({scene.data.string()}, loaded.model->task->schema(), {});
  double entropy[2] = {0, 0}, count[2] = {0, 0}, jsd = 0;  // of layer 1, head 1: all tokens, those of the question
  for (const std::int64_t index : etc::analyze::drawn_examples(reader->size(), 7, 5)) {
    const std::vector<etc::data::LoadedExample> alone = {{index, index, reader->read(index)}};
    const etc::EncoderInput input = loaded.model->task->feed(alone, "");
    etc::AttentionAnalysis analysis({}, [&](const etc::LayerStatistics& of) {
      if (of.layer != 1 || std::string(of.op->name) != "long_attention") return;
      for (std::int64_t i = 0; i < of.queries; ++i) {
        const double own = of.at(1, i, etc::sparse::QueryStatistic::entropy);
        const bool question = input.segment_ids[static_cast<std::size_t>(i)] == 3;
        for (const int group : {0, 1}) {
          if (group == 1 && !question) continue;
          entropy[group] += own;
          ++count[group];
        }
        jsd += of.at(1, i, etc::sparse::QueryStatistic::jsd);
      }
    });
    etc::ForwardOptions options;
    options.attention_watch = std::ref(analysis);
    etc::Tape tape(etc::Recording::off);
    loaded.model->encoder->forward(tape, input, options);
  }
  REQUIRE(count[1] > 0);
  const etc::test::GoldenFile file(scene.output / "analysis.h5");
  const auto at = [&](const std::string& name, std::size_t group) {
    const auto array = file.read<double>(name);  // [layers, heads, groups]
    REQUIRE(array.shape == std::vector<std::int64_t>{2, 2, 2});
    return array.values[(1 * 2 + 1) * 2 + group];
  };
  for (const std::size_t group : {0, 1}) {
    CHECK(at("entropy/long/count", group) == count[group]);
    CHECK(at("entropy/long/mean", group) == Approx(entropy[group] / count[group]).epsilon(1e-6));
  }
  CHECK(at("jsd/long/mean", 0) == Approx(jsd / count[0]).epsilon(1e-6));
  // First layer: its tables are the parameters, its first tokens have probabilities.
  const auto table = file.read<float>("first_layer/long_vectors");
  CHECK(table.shape == std::vector<std::int64_t>{12, 2, loaded.model->config->head_size()});
  const auto& parameters = loaded.model->parameters.all();
  const auto own = std::find_if(parameters.begin(), parameters.end(), [](const auto& parameter) {
    return parameter->name.ends_with("long_qkv_attention/qkv_relative_attention/relative_emb_table");
  });
  REQUIRE(own != parameters.end());
  const float* const values = (*own)->value.data();
  CHECK(table.values == std::vector<float>(values, values + (*own)->size()));
  const auto tokens = file.read<double>("first_layer/tokens");
  const auto n = static_cast<std::size_t>(tokens.shape.at(0));
  for (std::size_t row = 0; row < n; ++row) {
    double sum = 0;
    for (std::size_t key = 0; key < n; ++key) sum += tokens.values[row * n + key];
    CHECK((sum > 0 && sum < 1 + 1e-5));
  }
  CHECK(at("etc/mass/l2l/mean", 0) + at("etc/mass/l2g/mean", 0) == Approx(1).epsilon(1e-6));
}

// Whether long token i and global token g of an example belong to each other.
bool belongs(const etc::data::Example& example, std::size_t i, std::int64_t g) {
  const auto is = [&](const char* feature) { return etc::feed::numbers(example, feature)[i] == g; };
  return is("long_sentence_ids") || is("long_paragraph_ids") || is("l2g_linked_ids");
}

TEST_CASE("mass on members is that of the data's structure, also of a model without relative labels", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  place.train({"--use-residual-attention", "--num-hidden-layers", "1", "--relative-pos-max-distance", "0"});
  const fs::path model = place.folder / "run/best", data = place.folder / "train.h5", output = place.folder / "a";
  const Result result = place.run(
      {"analyze", "--model", model, "--data", data, "--output", output, "--examples", "6", "--groups", "all"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  etc::register_cpu_backend();
  const etc::LoadedModel loaded = etc::load_model(model);
  loaded.model->encoder->release_kernels();
  const auto reader = etc::open_dataset({data.string()}, loaded.model->task->schema(), {});
  double mass[2] = {0, 0}, queries[2] = {0, 0};  // of long and of global queries, head 1
  for (const std::int64_t index : etc::analyze::drawn_examples(reader->size(), 6, 1)) {
    const std::vector<etc::data::LoadedExample> alone = {{index, index, reader->read(index)}};
    const etc::EncoderInput input = loaded.model->task->feed(alone, "");
    etc::AnalysisSettings settings;
    settings.top = input.long_tokens() + input.global_tokens();
    etc::AttentionAnalysis analysis(settings, [&](const etc::LayerStatistics& of) {
      const bool global = std::string(of.op->name) == "global_attention";
      queries[global] += static_cast<double>(of.queries);
      for (std::int64_t n = 0; n < of.queries * settings.top; ++n) {
        const etc::sparse::TopKey& top = of.top[static_cast<std::size_t>(of.queries * settings.top + n)];
        const std::int64_t query = n / settings.top;
        if (top.key < 0 || top.set != 1) continue;
        const auto i = static_cast<std::size_t>(global ? top.key : query);
        if (belongs(alone.front().features, i, global ? query : top.key)) {
          mass[global] += static_cast<double>(top.probability);
        }
      }
    });
    etc::ForwardOptions options;
    options.attention_watch = std::ref(analysis);
    etc::Tape tape(etc::Recording::off);
    loaded.model->encoder->forward(tape, input, options);
  }
  const etc::test::GoldenFile file(output / "analysis.h5");
  const auto at = [&](const std::string& name) { return file.read<double>(name + "/mean").values.at(1); };
  const char* const types[] = {"l2g", "g2l"};
  for (const std::size_t op : {0, 1}) {
    const std::string type = types[op];
    REQUIRE(mass[op] > 0);
    CHECK(at("etc/member/" + type) == Approx(mass[op] / queries[op]).epsilon(1e-5));
    CHECK(at("etc/other/" + type) == Approx(at("etc/mass/" + type) - at("etc/member/" + type)).epsilon(1e-4));
    CHECK(at("etc/entropy_normalised/" + type) > 0);
    CHECK(at("etc/entropy_normalised/" + type) <= 1);
  }
  // The labels that tell members from others are not the model's: there are no sums by label.
  CHECK(!file.has("etc/label_mass"));
}

TEST_CASE("several models stand side by side, those with other heads are refused", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  const fs::path first = scene.folder / "first";
  fs::copy(scene.folder / "run", first, fs::copy_options::recursive);
  const Result result = scene.analyze({"--compare", (first / "best").string()});
  INFO(result.err);
  REQUIRE(result.code == 0);
  for (const char* name : {"model_1/analysis.h5", "model_2/analysis.h5", "compare_entropy_long.svg",
                           "compare_jsd_global.svg", "compare_own_jsd_long.svg"}) {
    CHECK(fs::exists(scene.output / name));
  }
  CHECK(etc::read_json_file(scene.output / "summary.json").at("models").size() == 2);
  const Scene other({"--num-hidden-layers", "2", "--num-attention-heads", "4"});
  const Result refused = scene.analyze({"--overwrite", "--compare", other.model});
  CHECK(refused.code == 1);
  CHECK(has(refused.err, "expected 2 heads as"));
  CHECK(has(refused.err, "got 4"));
}

// The megabytes in "expected peak memory 61.3 MB".
double megabytes(const std::string& text) {
  const std::size_t at = text.find("expected peak memory ");
  REQUIRE(at != std::string::npos);
  std::istringstream words(text.substr(at + 21));
  double number = 0;
  std::string unit;
  words >> number >> unit;
  return unit.starts_with("GB") ? 1000 * number : number;
}

TEST_CASE("the memory of an analysis is told before it starts, and limited with the same results", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  const Result forecast = scene.run({"analyze", "--model", scene.model, "--data", scene.data, "--forecast"});
  INFO(forecast.err);
  REQUIRE(forecast.code == 0);
  CHECK(has(forecast.out, "best: expected peak memory "));
  CHECK(!fs::exists(scene.output));
  const Result told = scene.analyze({"--examples", "5"});
  INFO(told.err);
  REQUIRE(told.code == 0);
  // One line before the work; after it what the process took.
  const std::size_t expected = told.err.find("expected peak memory "), took = told.err.rfind("peak memory ");
  REQUIRE(expected != std::string::npos);
  CHECK(told.err.find("expected peak memory ", expected + 1) == std::string::npos);
  CHECK(took > told.err.find('\n', expected));
  const std::string whole = etc::read_file(scene.output / "analysis.h5");
  const Result limited = scene.analyze({"--examples", "5", "--overwrite", "--memory-limit", "2GB"});
  INFO(limited.err);
  REQUIRE(limited.code == 0);
  CHECK(has(limited.err, "memory limit 2"));
  CHECK(has(limited.err, "peak memory "));
  CHECK(etc::read_file(scene.output / "analysis.h5") == whole);
  const Result small = scene.analyze({"--overwrite", "--memory-limit", "5MB"});
  CHECK(small.code == 1);
  CHECK(has(small.err, "the memory limit of 5"));
  CHECK(etc::read_file(scene.output / "analysis.h5") == whole);
  CHECK(has(scene.run({"analyze", "--model", scene.model, "--data", scene.data}).err, "expected --output"));
  CHECK(has(scene.analyze({"--document", "0", "--forecast"}).err, "--document is one"));
  // The results of the first model are held while the second is analysed; one line tells the largest.
  const Result both = scene.analyze({"--overwrite", "--compare", scene.model.string(), "--forecast"});
  const Result compared = scene.analyze({"--overwrite", "--compare", scene.model.string()});
  INFO(both.out << compared.err);
  REQUIRE(compared.code == 0);
  const std::string second = both.out.substr(both.out.find('\n') + 1);
  CHECK(megabytes(second) >= megabytes(both.out));
  CHECK(megabytes(compared.err) == Approx(megabytes(second)).margin(2));
}

TEST_CASE("what an analysis cannot do is noticed before the first model is analysed", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  const auto refused = [&](const Words& more) {
    const Result result = scene.analyze(more);
    CHECK(result.code != 0);
    CHECK(!has(result.err, "expected peak memory "));  // told when all is checked
    CHECK(!has(result.err, "examples/s"));
    return result.err;
  };
  // An encoder without a task has no loss.
  const fs::path alone = scene.folder / "alone";
  fs::copy(scene.model, alone, fs::copy_options::recursive);
  etc::Json config = etc::read_json_file(alone / "config.json");
  config.erase("task");
  etc::test::write_file(alone / "config.json", config.dump());
  CHECK(has(refused({"--gradients", "2", "--compare", alone.string()}), "the model has no task"));
  REQUIRE(scene.analyze({"--compare", alone.string(), "--examples", "3"}).code == 0);
  // Models of other data.
  config["task"] = {{"name", "hotpotqa"}};
  etc::test::write_file(alone / "config.json", config.dump());
  CHECK(has(refused({"--overwrite", "--compare", alone.string()}), "the model was trained for hotpotqa"));
  CHECK(etc::read_json_file(scene.output / "summary.json").at("models").size() == 2);
}

TEST_CASE("gradient norms by layer are written and drawn where asked for, by model in a comparison", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  const Result result = scene.analyze({"--examples", "6", "--gradients", "4", "--compare", scene.model.string()});
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(has(result.out, "of 4 examples, norms"));
  for (const char* name : {"model_1/gradient_norms.svg", "model_2/gradient_norms.csv", "compare_gradient_query_key.svg",
                           "compare_gradient_rest.svg"}) {
    CHECK(fs::exists(scene.output / name));
  }
  const etc::Json model = etc::read_json_file(scene.output / "summary.json").at("models").at(0).at("gradient_norms");
  CHECK(model.at("examples") == 4);
  const etc::test::GoldenFile file(scene.output / "model_1/analysis.h5");
  for (const std::string part : {"query_key", "rest"}) {
    const auto norms = file.read<double>("gradients/" + part);
    REQUIRE(norms.shape == std::vector<std::int64_t>{2});
    for (const std::size_t layer : {0, 1}) {
      CHECK(norms.values[layer] > 0);
      CHECK(model.at(part).at(layer).get<double>() == Approx(norms.values[layer]).epsilon(1e-6));
    }
  }
  // If there are fewer examples than --gradients asks for, all are used; without the option no norms are written.
  const Result all = scene.analyze({"--examples", "3", "--gradients", "40", "--overwrite"});
  CHECK(has(all.out, "of 3 examples, norms"));
  REQUIRE(scene.analyze({"--examples", "3", "--overwrite"}).code == 0);
  CHECK(!fs::exists(scene.output / "gradient_norms.svg"));
  CHECK(!etc::test::GoldenFile(scene.output / "analysis.h5").has("gradients"));
}

TEST_CASE("distances of global keys and what lies outside are told by query group, with extremes", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  REQUIRE(scene.analyze({"--examples", "7", "--jsd-distance"}).code == 0);
  const etc::test::GoldenFile file(scene.output / "analysis.h5");
  CHECK(file.has("jsd_distance/long/mean"));
  const auto values = [&](const std::string& name) { return file.read<double>(name).values; };
  // [layers, heads, groups]; groups: all, cls, question, candidate, sentence_globals, paragraph_globals.
  const auto count = values("etc/distance/g2g/count"), mean = values("etc/distance/g2g/mean");
  REQUIRE(count.size() == 2 * 2 * 6);
  for (std::size_t cell = 0; cell < 4; ++cell) {
    const std::size_t first = cell * 6;
    double members = 0, sum = 0;
    CHECK(count[first + 1] == 0);
    for (std::size_t group = 2; group < 6; ++group) {
      members += count[first + group];
      if (count[first + group] > 0) sum += count[first + group] * mean[first + group];
    }
    CHECK(members == count[first]);  // every global token of this data set is in one of the four groups
    CHECK(sum / members == Approx(mean[first]).epsilon(1e-5));
  }
  for (const std::string type : {"l2g", "g2l"}) {
    const auto member = values("etc/member/" + type + "/mean"), other = values("etc/other/" + type + "/mean");
    const auto mass = values("etc/mass/" + type + "/mean");
    for (std::size_t i = 0; i < mass.size(); ++i) {
      if (!std::isnan(mass[i])) CHECK(member[i] + other[i] == Approx(mass[i]).epsilon(1e-4));
    }
  }
  const auto carry = values("carry_largest/long/mean"), most = values("carry_largest/long/largest");
  const etc::Json summary = etc::read_json_file(scene.output / "summary.json").at("models").at(0).at("operators");
  CHECK(summary.at(0).at("mean_over_heads_by_layer").at("carry_largest").at("largest").size() == 2);
  // The window is narrower than 10: all of its mass is near.
  const double near = summary.at(0).at("first_layer_probability_by_distance").at("within_4").get<double>();
  const auto window = values("etc/mass/l2l/mean");
  CHECK(near == Approx((window[0] + window[6]) / 2).epsilon(1e-5));
  // The last bin with a value is that of the largest one.
  CHECK(values("jsd/long/histogram_end") == std::vector<double>{1});
  const double end = values("entropy/global/histogram_end").at(0);
  const auto bins = values("entropy/global/histogram"), largest = values("entropy/global/largest");
  std::size_t last = 0;
  for (std::size_t bin = 0; bin < 512; ++bin) last = bins[bin] > 0 ? bin : last;
  CHECK(last == static_cast<std::size_t>(largest[0] / end * 512));
  for (std::size_t i = 0; i < carry.size(); ++i) {
    if (!std::isnan(carry[i])) CHECK(most[i] >= carry[i]);
  }
}

// Compares the forecast of memory with the peak memory of the process. The memory of the program itself, of library
// heaps and of threads varies by a few megabytes.
void compare_memory(const std::string& what, const std::function<Result(const Words&)>& analyze, const Words& more) {
  CAPTURE(what);
  const double expected = megabytes(analyze(joined(more, {"--forecast"})).out);
  const Result result = analyze(more);
  INFO(result.err);
  REQUIRE(result.code == 0);
  const double took = 1e-6 * static_cast<double>(result.peak_bytes);
  std::printf("analyze %s: expected %.1f MB, took %.1f MB\n", what.c_str(), expected, took);
  CHECK(expected > std::min(0.88 * took, took - 8));
  CHECK(expected < std::max(1.15 * took, took + 20));
}

TEST_CASE("an analysis takes the memory that was forecast for it", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene({"--num-hidden-layers", "4", "--hidden-size", "96", "--num-attention-heads", "4"});
  etc::test::write_readable_dataset(scene.folder / "many.h5", 0, 400);
  const auto analyze = [&](const Words& more) {
    return scene.run(joined({"analyze", "--model", scene.model, "--data", scene.folder / "many.h5", "--output",
                             scene.output, "--overwrite", "--threads", "1"},
                            more));
  };
  compare_memory("400 short examples", analyze, {});
  compare_memory("3 short examples, all heads", analyze, {"--examples", "3", "--all-heads"});
  compare_memory("400 short examples, gradients", analyze, {"--gradients", "4"});
  compare_memory("400 short examples, exact", analyze, {"--exact", "--groups", "all"});
}

TEST_CASE("analyze says what it leaves out and refuses what it cannot do", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene({"--num-hidden-layers", "1"});
  const Result group = scene.analyze({"--groups", "titles"});
  CHECK(group.code == 2);
  CHECK(has(group.err,
            "--groups: expected query groups of all, cls, question, candidate, sentence_globals, "
            "paragraph_globals, got titles"));
  CHECK(!fs::exists(scene.output));
  const Result none = scene.analyze({"--groups", "cls"});
  INFO(none.err);
  REQUIRE(none.code == 0);
  CHECK(has(none.out, "below: queries of group cls\n"));
  CHECK(has(none.out, "group cls: the data have no such query"));
  const etc::Json of_none = etc::read_json_file(scene.output / "summary.json").at("models").at(0).at("operators").at(0);
  CHECK(of_none.at("rank_correlation_of_layer_and_median_entropy").is_null());
  CHECK(of_none.at("first_layer_probability_by_distance").at("within_4").is_null());
  fs::remove_all(scene.output);
  const Result one_layer = scene.analyze({"--examples", "50"});
  INFO(one_layer.err);
  REQUIRE(one_layer.code == 0);
  CHECK(has(one_layer.err, "50 examples asked for, the data have 20: all are used"));
  CHECK(has(one_layer.out, "one layer: there is nothing to compare, so no divergences"));
  const etc::Json summary = etc::read_json_file(scene.output / "summary.json").at("models").at(0);
  CHECK(summary.at("examples") == 20);
  CHECK(has(summary.at("notes").at(0), "no divergences"));
  CHECK(!etc::test::GoldenFile(scene.output / "analysis.h5").has("jsd"));
  // --overwrite replaces an earlier analysis, but never a folder with other files.
  CHECK(has(scene.analyze().err, "holds an analysis already (--overwrite replaces it)"));
  CHECK(scene.analyze({"--overwrite", "--examples", "2"}).code == 0);
  for (const char* name : {"notes.txt", "drawing.svg", "model_1/notes.txt", "model_x/analysis.h5"}) {
    etc::test::write_file(scene.output / name, "mine");
    const Result foreign = scene.analyze({"--overwrite"});
    CHECK(foreign.code == 2);
    CHECK(has(foreign.err, "expected a new or empty folder"));
    CHECK(etc::read_file(scene.output / name) == "mine");
    fs::remove_all(scene.output / *fs::path(name).begin());
  }
  etc::test::write_file(scene.output / "summary.json", "{\"mine\": 1}");
  const Result foreign = scene.analyze({"--overwrite"});
  CHECK(foreign.code == 2);
  CHECK(has(foreign.err, "expected a new or empty folder"));
  CHECK(fs::exists(scene.output / "statistics.csv"));
  CHECK(has(
      scene
          .run({"analyze", "--model", scene.model, "--data", scene.folder / "other.h5", "--output", scene.folder / "o"})
          .err,
      "vocab"));
}

TEST_CASE("files put into the output while an analysis runs stay", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  fs::create_directories(scene.output);
  const fs::path err = scene.folder / "analysis.err";
  etc::test::Child child(joined({*etc::test::program()}, {"analyze", "--model", scene.model, "--data", scene.data,
                                                          "--output", scene.output, "--all-heads"}),
                         scene.folder / "analysis");
  child.run_until([&] { return fs::exists(err) && has(etc::read_file(err), "expected peak memory"); });
  etc::test::write_file(scene.output / "notes.txt", "mine");
  child.wait();
  CHECK(fs::exists(scene.output / "notes.txt"));
}

// Generated records with their vocabulary, prepared, and a model that keeps it.
struct TextScene {
  etc::test::TemporaryFolder folder;
  fs::path model = folder / "run/best", data = folder / "train.h5", page = folder / "page.html";

  explicit TextScene(const Words& more) {
    const std::string vocab = folder / "sample/vocab.txt";
    must({"sample", "--task", "wikihop", "--records", "20", "--output", folder / "sample"});
    must({"prepare", "--task", "wikihop", "--split", "train", "--input", folder / "sample/train.json", "--output", data,
          "--vocab", vocab, "--splitter", "icu"});
    Words words = {"train", "--task",   "wikihop",      "--data",
                   data,    "--output", folder / "run", "--use-residual-attention"};
    must(joined(joined(words, etc::test::tiny_training("2")), more));
  }
  Result run(const Words& words) const { return etc::test::run_program(words, folder.path()); }
  void must(const Words& words) const {
    const Result result = run(words);
    INFO(result.err);
    REQUIRE(result.code == 0);
  }
  Words document(const Words& more) const {
    return joined({"analyze", "--model", model, "--data", data, "--output", page, "--document", "3"}, more);
  }
};

TEST_CASE("a document's page holds its tokens and whom they attend to, and needs nothing else", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const TextScene scene({});
  const Result without = scene.run(scene.document({}));
  CHECK(without.code == 2);
  CHECK(has(without.err, "keeps no vocabulary: give that of the data with --vocab"));
  const std::string vocab = scene.folder / "sample/vocab.txt";
  scene.must(scene.document({"--vocab", vocab, "--top", "4"}));
  const std::string html = etc::read_file(scene.page);
  CHECK(html.size() <= 5'000'000);
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("}) {
    CAPTURE(outside);
    CHECK(!has(html, outside));
  }
  // The data embedded in the page are valid JSON.
  const std::size_t begin = html.find("const D=") + 8, end = html.find(";\nconst el");
  REQUIRE(end != std::string::npos);
  const etc::Json page = etc::Json::parse(html.substr(begin, end - begin));
  CHECK(page.at("layers").size() == 2);
  CHECK(page.at("carries") == true);
  CHECK(page.at("top") == 4);
  const auto queries = page.at("layers").at(0).at("queries").get<std::size_t>();
  CHECK(page.at("longs").size() == queries);
  // Per query and head four keys of five bytes each, in base64.
  CHECK(page.at("layers").at(0).at("keys").get<std::string>().size() == (queries * 2 * 4 * 5 + 2) / 3 * 4);
  CHECK(has(scene.run(scene.document({"--vocab", vocab})).err, "exists already (--overwrite replaces it)"));
  CHECK(scene.run(scene.document({"--vocab", vocab, "--overwrite"})).code == 0);
  const std::string other = scene.folder / "other.html";
  etc::test::write_file(other, "<html>mine</html>");
  const Result kept = scene.run({"analyze", "--model", scene.model, "--data", scene.data, "--output", other,
                                 "--document", "1", "--vocab", vocab, "--overwrite"});
  CHECK(kept.code == 2);
  CHECK(has(kept.err, "--overwrite replaces an earlier page, and this file is none"));
  CHECK(etc::read_file(other) == "<html>mine</html>");
  const Result beyond = scene.run({"analyze", "--model", scene.model, "--data", scene.data, "--output",
                                   scene.folder / "b.html", "--document", "100", "--vocab", vocab});
  CHECK(beyond.code == 2);
  CHECK(has(beyond.err, "--document 100: expected the number of an example below 20"));
}

}  // namespace
