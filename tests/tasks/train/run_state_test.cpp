// What checkpoint `last` stores of a run, and which runs may be resumed from it.
#include "tasks/train/run_state.h"

#include <dlfcn.h>

#include <cmath>
#include <limits>

#include "etc_core/base/error.h"
#include "etc_core/base/version.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/backends.h"
#include "tasks/train/agreement.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/identity_of.h"
#include "tests/tasks/wikihop/examples.h"

namespace {

namespace fs = std::filesystem;
using etc::Json;

etc::RunConfig config_of(const fs::path& data, const Json& training = Json::object()) {
  Json config = etc::default_config("wikihop");
  config["model"] = etc::test::tiny_model().to_json();
  etc::overlay_config(config, {{"data", {{"train", {data.string()}}}}, {"training", training}}, "test");
  return etc::run_config_from_json(config, "test");
}

std::string refusal(const Json& stored, const Json& now) {
  try {
    etc::require_same_run(stored, now, "run/last");
  } catch (const etc::Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a run's state keeps results that are not numbers, and whether the best one is saved", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  const Json config = {{"model", Json::object()}}, identity = {{"build", {{"program", "1"}}}};
  etc::ParameterSet parameters;
  parameters.add("w", {3}, {etc::Initializer::Kind::ones, 0});
  parameters.initialize(1);
  etc::Optimizer optimizer{etc::OptimizerOptions{}};
  etc::RunProgress progress;
  progress.step = 7;
  progress.best_step = 5;
  progress.best = {{"f1", std::numeric_limits<double>::quiet_NaN()}, {"precision", 0.25}};
  progress.best_saved = false;
  const etc::MoreFiles files;
  const etc::BestCheckpoint best(folder / "best", config, files);
  etc::CarriedMemory memory;
  etc::save_run(folder / "last", {config, parameters, files, optimizer.moments(), progress, best, identity});
  const etc::RunProgress read = etc::load_run(folder / "last", {parameters, optimizer, memory}, identity);
  CHECK(read.step == 7);
  CHECK(read.best_step == 5);
  REQUIRE(read.best.size() == 2);
  CHECK(read.best[0].first == "f1");
  CHECK(std::isnan(read.best[0].second));
  CHECK(read.best[1] == std::pair<std::string, double>("precision", 0.25));
  CHECK(!read.best_saved);
}

TEST_CASE("RAdam goes on with the step its moments are of", "[tasks]") {
  etc::register_cpu_backend();
  const etc::test::TemporaryFolder folder;
  const Json config = {{"model", Json::object()}}, identity = {{"build", {{"program", "1"}}}};
  const etc::OptimizerOptions options{.kind = etc::OptimizerKind::radam, .beta_2 = 0.98, .epsilon = 1e-8};
  etc::ParameterSet through, resumed;
  for (etc::ParameterSet* parameters : {&through, &resumed}) {
    parameters->add("w", {3}, {etc::Initializer::Kind::ones, 0});
    parameters->initialize(1);
  }
  const auto step = [](etc::Optimizer& optimizer, etc::ParameterSet& parameters, float scale) {
    const std::vector<float> gradient = {0.5f * scale, -1.25f, 2 - scale};
    std::vector<etc::ParamRef> refs = etc::param_refs(parameters);
    refs[0].g = gradient.data();
    optimizer.step(refs, 0.01);
  };
  const auto values = [](etc::ParameterSet& parameters) {
    const etc::Tensor& value = parameters.all().front()->value;
    return std::vector<float>(value.data(), value.data() + value.size());
  };
  etc::Optimizer optimizer(options), other(options);
  etc::RunProgress progress;
  for (; progress.step < 8; ++progress.step) step(optimizer, through, static_cast<float>(progress.step));
  const etc::MoreFiles files;
  const etc::BestCheckpoint best(folder / "best", config, files);
  etc::CarriedMemory memory;
  etc::save_run(folder / "last", {config, through, files, optimizer.moments(), progress, best, identity});
  etc::load_run(folder / "last", {resumed, other, memory}, identity);
  CHECK(other.updates() == 8);
  const std::vector<float> saved = values(through);
  CHECK(values(resumed) == saved);
  step(optimizer, through, 3);
  step(other, resumed, 3);
  CHECK(values(through) != saved);  // the update count of a fresh optimiser would not have made a step
  CHECK(values(resumed) == values(through));
}

TEST_CASE("a run goes on only with the program and the libraries it was started with", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 4);
  const Json now = etc::test::identity_of(config_of(folder / "train.h5"));
  CHECK(refusal(now, now).empty());
  CHECK(now["build"]["program"] == etc::program_version());
  CHECK_THAT(now["build"]["library of vectors"].get<std::string>(), Catch::StartsWith("Highway 1."));
  const std::string products = now["build"]["library of products"];
  CHECK((products.starts_with("own products") || products.starts_with("oneDNN ")));
  for (const auto& [key, value] : now["build"].items()) {
    Json stored = now;
    stored["build"][key] = "0.0.1";
    CHECK_THAT(refusal(stored, now),
               Catch::StartsWith("run/last: cannot be resumed: " + key +
                                 ": the run was started with \"0.0.1\", now it is " + etc::json_line(value) +
                                 " (another --output starts a run of its own, "
                                 "with --init-from run/last from these weights)"));
  }
  // An identity of a program that did not record this yet.
  Json older = now;
  older.erase("build");
  CHECK_THAT(refusal(older, now),
             Catch::StartsWith("run/last: cannot be resumed: library of products: an older program "
                               "started the run and did not record it, now it is "));
}

TEST_CASE("what computes is told by the file of its own code, also inside another program's process", "[tasks]") {
  CHECK_THAT(etc::file_of_code(dlsym(RTLD_DEFAULT, "getpagesize")), Catch::Contains("/libc.so"));
  CHECK(etc::file_of_code(reinterpret_cast<const void*>(&etc::program_identity)) == "/proc/self/exe");
  const std::string own = etc::program_identity()["program"]["executable"];
  CHECK_THAT(own, Catch::StartsWith(std::to_string(fs::file_size("/proc/self/exe")) + " bytes, checksum "));
}

TEST_CASE("stored counters lack nothing but what older programs did not write", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  Json whole = {{"step", 7},
                {"samples", 28},
                {"evaluated_step", 4},
                {"best_step", 4},
                {"best", Json::array({Json::array({"f1", nullptr})})},
                {"best_saved", false},
                {"stale_evaluations", 1},
                {"last_loss", 0.5},
                {"loss_sum", 1.5},
                {"loss_steps", 3}};
  const auto read = [&](const Json& counters) {
    etc::TensorFileWriter file;
    file.set_metadata("progress", etc::json_line(counters));
    file.write(folder / "state.safetensors");
    return etc::read_run_progress(folder.path());
  };
  const etc::RunProgress progress = read(whole);
  CHECK(progress.step == 7);
  CHECK(progress.loader.samples == 28);
  CHECK(std::isnan(progress.best.at(0).second));
  CHECK(progress.loss_sum == 1.5);
  CHECK(!progress.best_saved);
  whole.erase("best_saved");
  CHECK(read(whole).best_saved);
  const std::string where = (folder / "state.safetensors").string() + ": metadata progress: stored counters: ";
  Json bad = whole;
  bad.erase("samples");
  CHECK_THROWS_WITH(read(bad), where + "samples is missing (the file is damaged)");
  bad = whole;
  bad["step"] = "7";
  CHECK_THROWS_WITH(read(bad), where + "step: expected an integer, got \"7\" (the file is damaged)");
  for (const char* best : {"[1]", "[[]]", R"([["f1"]])", R"([["f1", "x"]])", "[[0.5, 0.5]]", "3", R"({"f1": 0.5})"}) {
    bad = whole;
    bad["best"] = Json::parse(best);
    CHECK_THROWS_WITH(read(bad), Catch::Contains(where + "best: expected pairs of a name and a number or null, got "));
  }
}

TEST_CASE("a bf16 run does not move between processors with AMX and without", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 4);
  const Json now = etc::test::identity_of(config_of(folder / "train.h5", {{"compute", "bf16"}}));
  CHECK(refusal(now, now).empty());
  const std::string ours = now.at("machine").at("bf16 products");
  Json stored = now;
  // The values of earlier programs, whose bits differ on both.
  for (const std::string other : {"AVX-512", "AMX"}) {
    stored["machine"]["bf16 products"] = other;
    CHECK_THAT(refusal(stored, now), Catch::StartsWith("run/last: cannot be resumed: bf16 products: the run was "
                                                       "started with \"" +
                                                       other + "\", now it is \"" + ours + "\""));
  }
  stored["machine"].erase("bf16 products");
  CHECK_THAT(refusal(stored, now), Catch::Contains("bf16 products: an older program started the run"));
  // Products in fp32 are named by the library of products.
  CHECK(!etc::test::identity_of(config_of(folder / "train.h5")).at("machine").contains("bf16 products"));
}

TEST_CASE("where the data lie is no part of a run, and first weights are told apart by their place", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "a.h5", 0, 4);
  fs::copy_file(folder / "a.h5", folder / "b.h5");
  CHECK(etc::test::identity_of(config_of(folder / "a.h5")) == etc::test::identity_of(config_of(folder / "b.h5")));
  // An older run records the path of the first weights as given on its command line.
  const Json now = etc::test::identity_of(config_of(folder / "a.h5", {{"init_from", "source/best"}}));
  CHECK(now["training"]["init_from"] == (fs::current_path() / "source/best").string());
  Json stored = now;
  stored["training"]["init_from"] = "source/best";
  CHECK(refusal(stored, now).empty());
  stored["training"]["init_from"] = "another/best";
  CHECK_THAT(refusal(stored, now), Catch::Contains("training.init_from: the run was started with"));
}

}  // namespace
