// The training loop: its results must not depend on the division into micro-batches, threads or processes.
#include "tasks/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/run_state.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/worst.h"
#include "tests/tasks/train/identity_of.h"
#include "tests/tasks/train/run_losses.h"
#include "tests/tasks/wikihop/examples.h"

namespace {

namespace fs = std::filesystem;
using etc::Json;

// A small run on readable examples; changes: {section: {key: value}} over it.
etc::RunConfig config_for(const fs::path& data, const Json& changes = Json::object()) {
  Json config = etc::default_config("wikihop");
  etc::EtcConfig model = etc::test::tiny_model();
  model.use_residual_attention = true;
  config["model"] = model.to_json();
  etc::overlay_config(
      config,
      {{"data", {{"train", {data.string()}}}},
       {"training", {{"batch_size", 8}, {"steps", 4}, {"learning_rate", 0.003}, {"save_every", 100}, {"threads", 1}}}},
      "test");
  etc::overlay_config(config, changes, "test");
  return etc::run_config_from_json(config, "test");
}

Json training(const Json& keys) {
  return {{"training", keys}};
}

std::string weights_of(const fs::path& run, const char* checkpoint = "last") {
  return etc::read_file(run / checkpoint / "model.safetensors");
}

std::string message_of(const etc::RunConfig& config, const fs::path& output) {
  try {
    etc::train(config, output);
  } catch (const etc::Error& error) {
    return error.what();
  }
  return "";
}

// The first moments at the end of a run, all tensors concatenated: after one step 0.1 times the clipped gradient.
std::vector<float> moments_of(const fs::path& run) {
  const etc::TensorFileReader state(run / "last/state.safetensors");
  std::vector<float> all;
  for (const auto& [name, entry] : state.entries()) {
    if (!name.ends_with("/adam_m")) continue;
    const std::size_t first = all.size();
    all.resize(first + static_cast<std::size_t>(entry.size()));
    state.read_floats(name, all.data() + first);
  }
  return all;
}

TEST_CASE("accumulating micro-batches equals one big batch", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  // Dropout is active: its random numbers depend on the sample, not on the micro-batch.
  Json changes = {{"model", {{"hidden_dropout_prob", 0.1}, {"attention_probs_dropout_prob", 0.1}}},
                  {"training", {{"steps", 1}, {"clip_norm", 0}}}};
  etc::train(config_for(folder / "train.h5", changes), folder / "whole");
  const std::vector<float> whole = moments_of(folder / "whole");
  // Gradients are compared relative to the largest of all: those that are zero in exact arithmetic (key biases, which
  // shift a whole row) contain rounding noise of the others.
  const float scale =
      *std::max_element(whole.begin(), whole.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  for (const int tokens : {30, 60, 100}) {
    changes["training"]["micro_batch_tokens"] = tokens;
    const fs::path run = folder / ("micro" + std::to_string(tokens));
    etc::train(config_for(folder / "train.h5", changes), run);
    INFO(tokens << " tokens");
    const std::vector<float> parts = moments_of(run);
    REQUIRE(parts.size() == whole.size());
    double worst = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) etc::test::keep_worst(worst, std::abs(parts[i] - whole[i]));
    CHECK(worst <= 1e-6f * std::abs(scale));  // about eight roundings of fp32
  }
}

TEST_CASE("a gradient longer than the clip norm is shortened to it", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  const auto first_moments = [&](const char* run, double clip_norm) {
    etc::train(config_for(folder / "train.h5", training({{"steps", 1}, {"clip_norm", clip_norm}})), folder / run);
    return moments_of(folder / run);
  };
  const auto norm_of = [](const std::vector<float>& moments) {
    double squares = 0;
    for (const float m : moments) squares += static_cast<double>(m) * m;
    return std::sqrt(squares) / 0.1;  // of the gradient that was applied
  };
  const std::vector<float> whole = first_moments("whole", 0);
  const double norm = norm_of(whole);
  CHECK(norm_of(first_moments("clipped", norm / 3)) == Approx(norm / 3).epsilon(1e-5));
  CHECK(first_moments("short_enough", norm * 1.01) == whole);
}

TEST_CASE("the rates of a run are those of the schedule it names, which has no keys of others", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  Json keys = {{"schedule", "inverse_sqrt"}, {"warmup_steps", 2}, {"start_learning_rate", 1e-7}, {"log_every", 1}};
  etc::train(config_for(folder / "train.h5", training(keys)), folder / "run");
  std::vector<double> rates;
  std::istringstream lines(etc::read_file(folder / "run" / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) rates.push_back(Json::parse(line).at("learning_rate"));
  REQUIRE(rates.size() == 4);
  CHECK(rates[0] == Approx(1e-7));
  CHECK(rates[1] == Approx((0.003 + 1e-7) / 2));
  CHECK(rates[2] == Approx(0.003));
  CHECK(rates[3] == Approx(0.003 * std::sqrt(2.0 / 3)));
  keys["decay_power"] = 2;
  CHECK(message_of(config_for(folder / "train.h5", training(keys)), folder / "other") ==
        "config: training.decay_power: a key of schedule bert and polynomial, and this run's is inverse_sqrt");
  CHECK(message_of(config_for(folder / "train.h5", training({{"optimizer", "radam"}, {"adam_beta_2", 0.5}})),
                   folder / "other")
            .find("training.adam_beta_2: expected more than 2/3") != std::string::npos);
  CHECK(!fs::exists(folder / "other"));
}

TEST_CASE("training gives the same bits for any thread count", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  for (const int threads : {1, 2, 4}) {
    etc::train(config_for(folder / "train.h5", training({{"threads", threads}})),
               folder / ("t" + std::to_string(threads)));
  }
  CHECK(weights_of(folder / "t1") == weights_of(folder / "t2"));
  CHECK(weights_of(folder / "t1") == weights_of(folder / "t4"));
}

TEST_CASE("a tiny model learns to read answers off its documents", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 200);
  etc::test::write_readable_dataset(folder / "dev.h5", 1000, 60);
  const auto config =
      config_for(folder / "train.h5", {{"data", {{"eval", {(folder / "dev.h5").string()}}}},
                                       {"training", {{"steps", 30}, {"eval_every", 10}, {"log_every", 5}}}});
  const etc::TrainReport report = etc::train(config, folder / "run");
  REQUIRE(!report.best.empty());
  CHECK(report.best[0].first == "accuracy");
  CHECK(report.best[0].second >= 0.95);  // chance is 0.25

  SECTION("and the checkpoint `best` gives that very accuracy again") {
    const etc::LoadedModel loaded = etc::load_model(folder / "run" / "best");
    loaded.model->encoder->release_kernels();
    const auto reader =
        etc::open_dataset({(folder / "dev.h5").string()}, loaded.model->task->schema(), {loaded.data.vocab_sha256});
    const auto all = loaded.model->task->start_predictions({folder / "p.json", {}, 0});
    CHECK(etc::predict_dataset(*loaded.model, {reader, "dev.h5", "evaluate"}, all.get()));
    all->finish();
    CHECK(all->metrics() == report.best);
    const auto one_by_one = loaded.model->task->start_predictions({folder / "q.json", {}, 0});
    CHECK(etc::predict_dataset(*loaded.model, {reader, "dev.h5", "evaluate", 1}, one_by_one.get()));
    one_by_one->finish();
    CHECK(one_by_one->metrics() == report.best);
    CHECK(etc::read_file(folder / "p.json") == etc::read_file(folder / "q.json"));
    CHECK(etc::read_json_file(folder / "p.json").size() == 60);
  }
  SECTION("and its metrics say how the loss fell") {
    std::vector<double> losses;
    std::istringstream lines(etc::read_file(folder / "run" / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json entry = Json::parse(line);
      if (entry["kind"] == "train") losses.push_back(entry["loss"]);
    }
    REQUIRE(losses.size() == 6);
    CHECK(losses.back() < 0.5 * losses.front());
  }
}

TEST_CASE("a tiny model learns in bf16 what it learns in fp32, and the run stays bf16", "[tasks]") {
  if (!etc::cpu_offers(etc::ComputeType::bf16)) return etc::test::skip("this processor has no bf16 products");
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 200);
  etc::test::write_readable_dataset(folder / "dev.h5", 1000, 60);
  const auto config_in = [&](const char* compute) {
    return config_for(
        folder / "train.h5",
        {{"data", {{"eval", {(folder / "dev.h5").string()}}}},
         {"training", {{"steps", 30}, {"eval_every", 10}, {"log_every", 1}, {"compute", compute}, {"threads", 2}}}});
  };
  CHECK(etc::train(config_in("fp32"), folder / "fp32").best[0].second >= 0.95);
  CHECK(etc::train(config_in("bf16"), folder / "bf16").best[0].second >= 0.95);
  const auto exact = etc::test::losses(folder / "fp32"), rounded = etc::test::losses(folder / "bf16");
  REQUIRE(exact.size() >= 30);
  REQUIRE(rounded.size() == exact.size());
  CHECK(rounded != exact);
  for (std::size_t step = 0; step < 5; ++step) CHECK(rounded[step] == Approx(exact[step]).epsilon(0.01));

  CHECK(etc::train(config_in("auto"), folder / "bf16").step == 30);  // keeps the type that the run was started with
  CHECK(etc::read_json_file(folder / "bf16" / "config.json")["training"]["compute"] == "bf16");
  CHECK(message_of(config_in("fp32"), folder / "bf16")
            .find("cannot be resumed: training.compute: the run was started with \"bf16\", now it is \"fp32\"") !=
        std::string::npos);
}

TEST_CASE("a run goes on only as the run it was", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  const auto config = config_for(folder / "train.h5");
  etc::train(config, folder / "run");
  const std::string before = weights_of(folder / "run");

  SECTION("the same command on a finished run changes nothing") {
    CHECK(etc::train(config, folder / "run").step == 4);
    CHECK(weights_of(folder / "run") == before);
  }
  SECTION("threads and logging may change, and so may the place of the data") {
    fs::rename(folder / "train.h5", folder / "moved.h5");
    const auto other = config_for(folder / "moved.h5", training({{"threads", 2}, {"log_every", 1}, {"save_every", 7}}));
    CHECK(etc::train(other, folder / "run").step == 4);
  }
  SECTION("another rate is refused") {
    CHECK(message_of(config_for(folder / "train.h5", training({{"learning_rate", 0.5}})), folder / "run")
              .find("run/last: cannot be resumed: training.learning_rate: the run was started with 0.003, now it is "
                    "0.5") != std::string::npos);
  }
  SECTION("another model is refused") {
    CHECK(message_of(config_for(folder / "train.h5", {{"model", {{"local_radius", 5}}}}), folder / "run")
              .find("cannot be resumed: model.local_radius: the run was started with 4, now it is 5") !=
          std::string::npos);
  }
  SECTION("other data are refused") {
    etc::test::write_readable_dataset(folder / "train.h5", 1, 20);
    CHECK(message_of(config, folder / "run").find("cannot be resumed: content of the training data") !=
          std::string::npos);
  }
  SECTION("another vocabulary is refused") {
    etc::test::write_readable_dataset(folder / "train.h5", 0, 20, "v2");
    CHECK(message_of(config, folder / "run").find("cannot be resumed: vocabulary") != std::string::npos);
  }
  SECTION("another instruction set is refused") {
    const Json now = etc::test::identity_of(config);
    Json stored = now;
    stored["machine"]["instruction set"] = "another";
    CHECK_NOTHROW(etc::require_same_run(now, now, "run"));
    try {
      etc::require_same_run(stored, now, "run");
      FAIL("accepted");
    } catch (const etc::Error& error) {
      CHECK(std::string(error.what())
                .find("run: cannot be resumed: instruction set: the run was started with "
                      "\"another\", now it is") == 0);
    }
  }
  SECTION("a damaged state is an error, and the checkpoint is left alone") {
    const fs::path state = folder / "run" / "last" / "state.safetensors";
    const std::string bytes = etc::read_file(state);
    for (const std::size_t size : {std::size_t{0}, std::size_t{7}, bytes.size() / 2, bytes.size() - 1}) {
      etc::test::write_file(state, bytes.substr(0, size));
      CHECK(message_of(config, folder / "run").find("state.safetensors") != std::string::npos);
    }
    CHECK(weights_of(folder / "run") == before);
  }
}

TEST_CASE("a run goes on with more steps and says what became of its rates", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  const auto with = [&](Json keys, int steps) {
    keys["steps"] = steps;
    return config_for(folder / "train.h5", training(keys));
  };
  const auto log = [&](const char* run) { return etc::read_file(folder / run / "log.txt"); };
  const Json sqrt = {{"schedule", "inverse_sqrt"}, {"warmup_steps", 2}};
  etc::train(with(sqrt, 4), folder / "run");
  CHECK(etc::train(with(sqrt, 7), folder / "run").step == 7);
  etc::train(with(sqrt, 7), folder / "whole");
  CHECK(weights_of(folder / "run") == weights_of(folder / "whole"));
  CHECK_THAT(log("run"), Catch::Contains("more steps, 7 instead of 4: the weights are those of a run that was started "
                                         "with 7"));
  CHECK(etc::read_json_file(folder / "run/config.json")["training"]["steps"] == 7);

  etc::train(with(Json::object(), 4), folder / "bert");
  CHECK(etc::train(with(Json::object(), 6), folder / "bert").step == 6);
  CHECK_THAT(log("bert"),
             Catch::Contains("the rates of schedule bert depend on how many there are. The 4 steps that are "
                             "done had those of a run of 4; the next one has 0.001, where that run would "
                             "have 0."));
  CHECK(message_of(with(Json::object(), 5), folder / "bert")
            .find("run was started with 6 steps, now it has 5: expected as many or more") != std::string::npos);
  CHECK(message_of(with({{"eval_every", 1}}, 7), folder / "bert").find("training.eval_every") != std::string::npos);
}

TEST_CASE("a run saves every so many steps or after so much time", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  // Diverges after the first step: the files present then were saved before.
  const auto saves = [&](const Json& every, const std::string& run) {
    const auto config = config_for(
        folder / "train.h5",
        {{"model", {{"use_residual_attention", false}}},
         {"training", {{"learning_rate", 1e30}, {"steps", 50}, {"warmup_proportion", 0}, {"save_every", every}}}});
    CHECK(message_of(config, folder / run).find("train: ") == 0);
    return fs::exists(folder / run / "last");
  };
  CHECK(saves(1, "steps"));
  CHECK_FALSE(saves(40, "fewer"));
  CHECK(saves("0.001ms", "time"));
  CHECK_FALSE(saves("1h", "longer"));
}

TEST_CASE("data that do not fit are refused before the run's folder exists", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "few.h5", 0, 5);
  etc::test::write_readable_dataset(folder / "none.h5", 0, 0);
  etc::test::write_readable_dataset(folder / "train.h5", 0, 10);
  etc::test::write_readable_dataset(folder / "other.h5", 0, 10, "v2");
  const fs::path run = folder / "run";
  CHECK(
      message_of(config_for(folder / "few.h5"), run).find("5 examples are less than one batch: expected at least 8") !=
      std::string::npos);
  CHECK(message_of(config_for(folder / "none.h5"), run).find("the data set has no examples") != std::string::npos);
  CHECK(!message_of(config_for(folder / "missing.h5"), run).empty());
  CHECK(message_of(config_for(folder / "train.h5", {{"data", {{"eval", {(folder / "other.h5").string()}}}}}), run) !=
        "");
  CHECK(message_of(config_for(folder / "train.h5", training({{"steps", 0}, {"epochs", 0.1}})), run)
            .find("is less than one step") != std::string::npos);
  CHECK(!fs::exists(run));
  // Token ids beyond the model's vocabulary are detected when they are read.
  CHECK(message_of(config_for(folder / "train.h5", {{"model", {{"vocab_size", 20}}}}), run)
            .find("long_token_ids: expected token ids below vocab_size=20") != std::string::npos);
}

TEST_CASE("a run starts from another checkpoint's weights", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  etc::train(config_for(folder / "train.h5"), folder / "source");
  // One step with rate 0 (all of it warm-up): the weights afterwards are the initial ones.
  const auto from = [&](const Json& task) {
    return config_for(
        folder / "train.h5",
        {{"task", task},
         {"training", {{"steps", 1}, {"warmup_proportion", 1}, {"init_from", (folder / "source/best").string()}}}});
  };
  SECTION("encoder and head, where the head is the same") {
    etc::train(from(Json::object()), folder / "run");
    CHECK(weights_of(folder / "run") == weights_of(folder / "source"));
  }
  SECTION("the encoder alone, where it is another") {
    etc::train(from({{"add_final_layer", false}}), folder / "run");
    const etc::TensorFileReader source(folder / "source/last/model.safetensors");
    const etc::TensorFileReader run(folder / "run/last/model.safetensors");
    const auto values = [](const etc::TensorFileReader& file, const std::string& name) {
      std::vector<float> numbers(static_cast<std::size_t>(file.entry(name).size()));
      file.read_floats(name, numbers.data());
      return numbers;
    };
    CHECK(!run.has("global_output_layer/transform/layer_norm/gamma"));
    CHECK(values(run, "output_weights") != values(source, "output_weights"));
    const std::string table = "etc_document_bert/token_emb_lookup/embedding_table";
    CHECK(values(run, table) == values(source, table));
  }
  SECTION("but not from one with another vocabulary") {
    etc::test::write_readable_dataset(folder / "train.h5", 0, 20, "v2");
    CHECK(message_of(from(Json::object()), folder / "run").find("made with another vocabulary") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder / "run"));
  }
}

TEST_CASE("a loss that is not finite stops the run and names the first bad operator", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  const auto config = config_for(folder / "train.h5",
                                 {{"model", {{"use_residual_attention", false}}},
                                  {"training", {{"learning_rate", 1e30}, {"steps", 50}, {"warmup_proportion", 0}}}});
  const std::string message = message_of(config, folder / "run");
  INFO(message);
  CHECK(message.find("train: ") == 0);
  CHECK(message.find(" at step ") != std::string::npos);
  CHECK(message.find("first bad operator: ") != std::string::npos);
}

TEST_CASE("weights that are not finite become no checkpoint", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  // Loss and gradient of the first step are finite; the update is not.
  const Json steps = {{"learning_rate", 1e300}, {"steps", 50}, {"warmup_proportion", 0}};
  for (const Json& more :
       {Json{{"save_every", 1}}, Json{{"keep_every", 1}, {"keep_last", 2}}, Json{{"eval_every", 1}}}) {
    Json settings = steps;
    settings.update(more);
    fs::remove_all(folder / "run");
    const std::string message =
        message_of(config_for(folder / "train.h5", {{"model", {{"use_residual_attention", false}}},
                                                    {"data", {{"eval", {(folder / "train.h5").string()}}}},
                                                    {"training", settings}}),
                   folder / "run");
    INFO(message);
    CHECK(message.find("train: after step 1: weights: ") == 0);
    CHECK(message.find("; there is no checkpoint yet (try ") != std::string::npos);
    for (const char* checkpoint : {"last", "best", "kept"}) CHECK(!fs::exists(folder / "run" / checkpoint));
  }
}

TEST_CASE("evaluations that are no better are counted from the last one that was", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  const auto config = [&](std::int64_t patience) {
    return config_for(folder / "train.h5",
                      {{"data", {{"eval", {(folder / "train.h5").string()}}}},
                       {"training", {{"steps", 40}, {"eval_every", 1}, {"early_stopping", patience}}}});
  };
  etc::train(config(0), folder / "whole");
  std::vector<double> accuracies;
  std::istringstream lines(etc::read_file(folder / "whole/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const Json entry = Json::parse(line);
    if (entry.at("kind") == "eval") accuracies.push_back(entry.at("accuracy"));
  }
  REQUIRE(accuracies.size() == 40);
  // The evaluation at which a run stops; consecutive: the count restarts at every best one.
  const auto stop = [&](std::int64_t patience, bool consecutive) {
    double best = -1;
    std::int64_t stale = 0, step = 0;
    for (const double accuracy : accuracies) {
      ++step;
      const bool better = accuracy > best;
      best = std::max(best, accuracy);
      stale = better ? (consecutive ? 0 : stale) : stale + 1;
      if (stale == patience) break;
    }
    return step;
  };
  std::int64_t patience = 2;
  while (patience < 40 && stop(patience, true) == stop(patience, false)) ++patience;
  REQUIRE(patience < 40);
  CHECK(etc::train(config(patience), folder / "stopped").step == stop(patience, true));
}

TEST_CASE("a run stops early when evaluations get no better", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 20);
  // A rate of 0 learns nothing: the first evaluation is the best, and two more do not improve it.
  const auto config =
      config_for(folder / "train.h5",
                 {{"data", {{"eval", {(folder / "train.h5").string()}}}},
                  {"training", {{"learning_rate", 0}, {"steps", 50}, {"eval_every", 2}, {"early_stopping", 2}}}});
  CHECK(etc::train(config, folder / "run").step == 6);
}

}  // namespace
