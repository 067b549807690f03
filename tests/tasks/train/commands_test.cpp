// train, eval, predict and benchmark from the user's point of view: results, messages and exit codes of the program.
#include <algorithm>

#include "data/dataset.h"
#include "data/dataset_info.h"
#include "data/text/sha256.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "tasks/wikihop/schema.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/place.h"

namespace {

namespace fs = std::filesystem;
using namespace etc::test;

TEST_CASE("train, eval and predict go from prepared data to a scored prediction file", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  place.train();
  const fs::path data = place.folder / "train.h5", model = place.folder / "run/best";
  const Result eval = place.run({"eval", "--model", model, "--data", data});
  INFO(eval.err);
  CHECK(eval.code == 0);
  CHECK(eval.out.starts_with("accuracy 0."));
  CHECK(has(eval.out, "string_accuracy 0."));
  CHECK(has(eval.out, "examples 20\n"));

  const fs::path predictions = place.folder / "p.json";
  CHECK(place.run({"predict", "--model", model, "--data", data, "--output", predictions}).code == 0);
  CHECK(etc::read_json_file(predictions).size() == 20);
  const Result streamed = place.run({"predict", "--model", model, "--data", data, "--output", "-"});
  CHECK(streamed.out == etc::read_file(predictions));

  // Scoring the same file against gold answers in the raw format gives the model's accuracy.
  etc::Json gold = etc::Json::array();
  for (int i = 0; i < 20; ++i) {
    const auto features = etc::test::readable_example(i).features;
    gold.push_back(
        {{"id", std::get<std::string>(features.at("id"))}, {"answer", std::get<std::string>(features.at("answer"))}});
  }
  etc::test::write_file(place.folder / "gold.json", etc::json_line(gold));
  const Result scored =
      place.run({"eval", "--task", "wikihop", "--predictions", predictions, "--gold", place.folder / "gold.json"});
  INFO(scored.err);
  CHECK(scored.code == 0);
  const std::string line = eval.out.substr(eval.out.find("string_accuracy"));
  CHECK(has(scored.out, line.substr(0, line.find('\n') + 1)));
}

TEST_CASE("the same training command twice is one run", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  place.train();
  const std::string weights = etc::read_file(place.folder / "run/last/model.safetensors");
  place.train();
  CHECK(etc::read_file(place.folder / "run/last/model.safetensors") == weights);
  const Result other = place.run(place.training({"--seed", "9"}));
  CHECK(other.code == 1);
  CHECK(has(other.err, "cannot be resumed: training.seed: the run was started with 1, now it is 9"));
  // What a run ended with is in its log, too.
  const std::string log = etc::read_file(place.folder / "run/log.txt");
  CHECK(has(log, " error: " + other.err.substr(other.err.find((place.folder / "run/last").string()))));
}

TEST_CASE("command lines that cannot be meant give exit code 2 and a hint", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const auto refused = [&](const Words& words, const std::string& part) {
    const Result result = place.run(words);
    INFO(result.err);
    CHECK(result.code == 2);
    CHECK(has(result.err, part));
    CHECK(!fs::exists(place.folder / "run"));
  };
  refused(place.training({"--lerning-rate", "1"}), "unknown option --lerning-rate (did you mean --learning-rate?)");
  refused(place.training({"--batch-size", "many"}), "--batch-size: expected an integer, got \"many\"");
  refused(place.training({"--resume", place.folder / "run"}), "either --output RUN");
  refused({"train", "--data", place.folder / "train.h5"}, "either --output RUN");
  refused({"train", "--task", "wikihop", "--output", place.folder / "run", "--vocab-size", "9"}, "--data");
  etc::test::write_file(place.folder / "c.json", R"({"training": {"lerning_rate": 1}})");
  refused(place.training({"--config", place.folder / "c.json"}),
          "unknown key training.lerning_rate (did you mean training.learning_rate?)");
  refused({"eval", "--model", "x"}, "expected --model and --data, or --predictions and --gold");
  refused({"predict", "--model", "x", "--output", "z"}, "expected either --data or --input");
  refused({"predict", "--model", "x", "--data", "y"}, "expected --output FILE");
  refused({"benchmark", "--lengths", "0"}, "--lengths");
  refused({"benchmark", "--preset", "bse"}, "(did you mean base?)");
  refused({"benchmark", "--mode", "train", "--compute", "int8"}, "training offers fp32 and bf16, not int8");
  refused({"benchmark", "--mode", "train", "--scores", "fp16"}, "training offers int32, not fp16");
  refused({"benchmark", "--forecast", "--output", "x"}, "--forecast runs nothing");
  refused({"encode", "--model", "x", "--output", "y"}, "expected either --inputs or --data");
}

TEST_CASE("a model larger than the machine is refused at once", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const Result result = place.run(place.training({"--hidden-size", "16777216", "--intermediate-size", "16777216"}));
  CAPTURE(result.err);
  CHECK(result.code == 1);
  CHECK(has(result.err, "weights and their gradients take"));
  CHECK(has(result.err, "(a smaller model)"));
  CHECK(!fs::exists(place.folder / "run"));
}

TEST_CASE("options that would do nothing are refused by name", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const std::string data = place.folder / "train.h5", file = place.folder / "file";
  const auto refused = [&](const Words& words, const std::string& part) {
    const Result result = place.run(words);
    CAPTURE(result.err, part);
    CHECK(result.code == 2);
    CHECK(has(result.err, part));
    CHECK(!fs::exists(file));
  };
  refused(place.training({"--forecast", "--trace", file}), "--profile and --trace go without --forecast");
  refused(place.training({"--link-megabits", "100"}), "go with --forecast --processes R");
  place.train();
  const std::string model = place.folder / "run/best";
  const Words predicting = {"predict", "--model", model, "--data", data, "--output", file};
  refused(etc::test::joined(predicting, {"--n-best", "3"}), "--n-best: expected --n-best-output FILE beside it");
  refused(etc::test::joined(predicting, {"--splitter", "icu"}), "--splitter goes with --input");
  refused({"eval", "--model", model, "--data", data, "--sf-threshold", "0.3"},
          "--sf-threshold is no option of a model of task wikihop");
  const Words scoring = {"eval", "--task", "wikihop", "--predictions", "p", "--gold", "g"};
  refused(etc::test::joined(scoring, {"--vocab", "v"}), "--vocab goes with --model");
  refused(etc::test::joined(scoring, {"--compute", "bf16"}), "--compute, --scores and --device go with --model");
  const Words encoding = {"encode", "--model", model, "--data", data, "--output", file};
  for (const Words& more : {Words{"--vocab", "v"}, Words{"--states", "global"}, Words{"--max-long-tokens", "9"}}) {
    refused(etc::test::joined(encoding, more), more[0] + " is no option of --data or --inputs");
  }
  const Words analysing = {"analyze", "--model", model, "--data", data, "--output", file};
  refused(etc::test::joined(analysing, {"--layers", "1"}), "--layers needs --document");
  refused(etc::test::joined(analysing, {"--document", "0", "--examples", "4"}),
          "--examples is no option of --document");
}

TEST_CASE("the second file of NumPy's form is an output as the first one is", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  place.train();
  const fs::path texts = place.folder / "s.npy.offsets.npy";
  etc::test::write_file(texts, "{\"text\": \"mine\"}\n");
  const Result result = place.run({"encode", "--model", place.folder / "run", "--text", texts, "--states", "long",
                                   "--output", place.folder / "s.npy"});
  CHECK(result.code == 2);
  CHECK(has(result.err, "s.npy.offsets.npy is the same file as --text"));
  CHECK(etc::read_file(texts) == "{\"text\": \"mine\"}\n");
}

TEST_CASE("models and data that do not belong together give exit code 1 and write nothing", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  place.train();
  const fs::path model = place.folder / "run/best", output = place.folder / "p.json";
  const auto failed = [&](const Words& words, const std::string& part) {
    const Result result = place.run(words);
    INFO(result.err);
    CHECK(result.code == 1);
    CHECK(has(result.err, part));
    CHECK(!fs::exists(output));
  };
  failed({"predict", "--model", model, "--data", place.folder / "other.h5", "--output", output}, "vocab");
  failed({"predict", "--model", model, "--data", place.folder / "empty.h5", "--output", output}, "no examples");
  failed({"predict", "--model", model, "--data", place.folder / "missing.h5", "--output", output}, "missing.h5");
  failed({"eval", "--model", place.folder / "nothing", "--data", place.folder / "train.h5"}, "nothing");

  // A folder with an encoder without a head.
  etc::Json config = etc::read_json_file(model / "config.json");
  fs::copy(model, place.folder / "bare", fs::copy_options::recursive);
  config.erase("task");
  etc::test::write_file(place.folder / "bare/config.json", etc::json_line(config));
  failed({"predict", "--model", place.folder / "bare", "--data", place.folder / "train.h5", "--output", output},
         "the model has no task");
  // Weights of another head than the configuration describes.
  config = etc::read_json_file(model / "config.json");
  config["task"]["add_final_layer"] = false;
  etc::test::write_file(place.folder / "bare/config.json", etc::json_line(config));
  failed({"predict", "--model", place.folder / "bare", "--data", place.folder / "train.h5", "--output", output},
         "global_output_layer/transform");
}

TEST_CASE("data that cannot be trained on give exit code 1 and no run", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const auto failed = [&](const Words& words, const std::string& part) {
    const Result result = place.run(words);
    INFO(result.err);
    CHECK(result.code == 1);
    CHECK(has(result.err, part));
    CHECK(!fs::exists(place.folder / "run"));
  };
  failed(place.training({"--batch-size", "21"}), "20 examples are less than one batch: expected at least 21");
  failed(place.training({}, "empty.h5"), "empty.h5: the data set has no examples");
  failed(place.training({}, "missing.h5"), "missing.h5");
  failed(place.training({"--eval-data", place.folder / "other.h5"}), "vocab_sha256");
  failed(place.training({"--init-from", place.folder / "nothing"}), "nothing");
  etc::test::write_file(place.folder / "text.h5", "not HDF5");
  failed(place.training({}, "text.h5"), "text.h5");

  // Data without answers cannot be trained on; data with answers may have more candidates than global tokens.
  const auto write = [&](const char* name, bool labelled, std::int64_t candidates) {
    etc::data::DatasetInfo info;
    info.task = "wikihop";
    info.split = "train";
    info.vocab_sha256 = etc::data::sha256_hex("v1");
    info.preprocess_config = etc::Json::object();
    info.labelled = labelled;
    info.unicode_version = "15.0";
    etc::data::DatasetWriter writer(place.folder / name, etc::wikihop::schema(), info);
    for (std::int64_t i = 0; i < 4; ++i) {
      etc::data::Example example = etc::test::readable_example(i).features;
      example["num_candidates"] = candidates;
      writer.append(example);
    }
    writer.finish({}, 4, 0, 0);
  };
  write("unlabelled.h5", false, 4);
  failed(place.training({}, "unlabelled.h5"), "the data set has no labels");
  write("many.h5", true, 40);
  const Result many = place.run(place.training({}, "many.h5"));
  INFO(many.err);
  CHECK(many.code == 1);
  CHECK(has(many.err, "many.h5: example readable_"));
  CHECK(has(many.err, "num_candidates: expected 1 … G=7 candidates, the first global tokens, got 40"));
  CHECK(!fs::exists(place.folder / "run/last"));
}

TEST_CASE("places that cannot be written to give exit code 1 and say which", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  place.train();
  const fs::path model = place.folder / "run/best", data = place.folder / "train.h5";
  const auto failed = [&](const Words& words) {
    const Result result = place.run(words);
    INFO(result.err);
    CHECK(result.code == 1);
    CHECK(has(result.err, "/proc/etc"));  // no user, not even root, can create files there
  };
  Words words = place.training();
  words[6] = "/proc/etc/run";
  failed(words);
  failed({"predict", "--model", model, "--data", data, "--output", "/proc/etc.json"});
  failed({"encode", "--model", model, "--data", data, "--output", "/proc/etc.h5"});
}

TEST_CASE("a run's folder that is in use is refused and left alone", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  Words command = {etc::test::program().value()};
  const Words words = place.training({}, "train.h5", "1000000");
  command.insert(command.end(), words.begin(), words.end());
  etc::test::Child first(command, place.folder / "first");
  first.run_until([&] { return fs::exists(place.folder / "run" / "metrics.jsonl"); });
  REQUIRE(first.running());
  const Result second = place.run(place.training());
  INFO(second.err);
  CHECK(second.code == 1);
  CHECK(has(second.err, "in use by another run (process "));
  const Result info = place.run({"info", place.folder / "run"});
  CHECK(has(info.out, "in use by process"));
  CHECK(first.running());
}

TEST_CASE("what a run says shows loss, speed, memory and residual scores", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const Result first = place.run(place.training());
  INFO(first.err);
  CHECK(has(first.err, "expected peak memory "));
  CHECK(has(first.err, "residual scores: off"));
  CHECK(has(first.err, "train 2/2 steps, "));
  CHECK(has(first.err, "steps/s, "));
  CHECK(has(first.err, ", loss "));
  CHECK(has(first.out, "steps 2\n"));

  // Fine-tuning logs how its residual scores compare with those of the checkpoint.
  fs::rename(place.folder / "run", place.folder / "source");
  const Words from = {"--init-from", place.folder / "source/best"};
  const Result same = place.run(place.training(from));
  INFO(same.err);
  CHECK(same.code == 0);
  CHECK(has(same.err, "residual scores: off, as the checkpoint was trained with"));
  fs::remove_all(place.folder / "run");
  const Result other = place.run(
      place.training({"--init-from", place.folder / "source/best", "--use-residual-attention", "--use-running-mean"}));
  INFO(other.err);
  CHECK(other.code == 0);
  CHECK(has(other.err, "residual scores: running mean, but the checkpoint was trained with: off"));
}

TEST_CASE("trained weights have the names of the published checkpoints", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  place.train({"--relative-pos-max-distance", "4", "--relative-vocab-size", "12", "--embedding-size", "8",
               "--max-absolute-position-embeddings", "64", "--share-qkv-projections", "false", "--share-kv-projections",
               "false", "--share-feed-forward-params", "false", "--share-att-output-projection", "false"});
  // etc-core 12.2 with nothing shared, task-wikihop 4; in the order of the specification.
  const std::string document = "etc_document_bert/", layers = document + "global_local_transformer_layers/";
  const std::string block = layers + "fused_att_layer_0/", fused = block + "fused_global_local_att/";
  std::vector<std::string> expected = {document + "token_emb_lookup/embedding_table",
                                       document + "token_emb_lookup/projection/kernel",
                                       document + "token_emb_lookup/projection/bias",
                                       document + "segment_emb_lookup/embedding_table",
                                       "position_emb_lookup_long/embedding_table",
                                       "position_emb_lookup_global/embedding_table",
                                       "output_weights",
                                       "output_bias"};
  const auto add = [&](const std::string& prefix, std::initializer_list<const char*> names) {
    for (const char* name : names) expected.push_back(prefix + name);
  };
  for (const char* norm : {"long_emb_layer_norm/", "global_emb_layer_norm/"}) add(document + norm, {"gamma", "beta"});
  for (const char* norm : {"layer_norm_0/", "layer_norm_1/"}) add(block + norm, {"gamma", "beta"});
  for (const char* name : {"long_query", "global_query", "l2l_key", "l2l_value", "l2g_key", "l2g_value", "g2g_key",
                           "g2g_value", "g2l_key", "g2l_value"}) {
    add(fused + name + "_projection/linear/", {"kernel", "bias"});
  }
  for (const char* side : {"long", "global"}) add(fused + side + "_output_projection/", {"kernel", "bias"});
  for (const char* table : {"long_qkv_attention/qkv_relative_attention/", "global_qkv_attention/"}) {
    add(fused + table, {"relative_emb_table", "relative_bias_table"});
  }
  for (const std::string& block_name : {layers + "long_feed_forward_layer_0/", layers + "global_feed_forward_layer_0/",
                                        std::string("global_output_layer/transform/")}) {
    add(block_name, {"dense_layers/layer_0/kernel", "dense_layers/layer_0/bias", "dense_layers/layer_1/kernel",
                     "dense_layers/layer_1/bias", "layer_norm/gamma", "layer_norm/beta"});
  }
  std::sort(expected.begin(), expected.end());
  for (const char* checkpoint : {"run/best", "run/last"}) {
    const etc::TensorFileReader file(place.folder / checkpoint / "model.safetensors");
    std::vector<std::string> names;
    for (const auto& [name, entry] : file.entries()) names.push_back(name);
    CHECK(names == expected);
  }
}

TEST_CASE("the benchmark gives a table, a CSV file and pictures", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  for (const std::string mode : {"infer", "train"}) {
    const fs::path folder = place.folder / mode;
    const Result result =
        place.run({"benchmark", "--preset", "tiny", "--lengths", "32,64", "--residual", "off,sum,mean", "--mode", mode,
                   "--repeats", "1", "--threads", "1", "--output", folder});
    INFO(result.err);
    REQUIRE(result.code == 0);
    CHECK(has(result.err, "forecast 0/6 points, L=32 off fp32"));
    CHECK(has(result.err, "forecast 5/6 points, "));
    CHECK(has(result.err, "benchmark 0/12 calls, L=32 off fp32, warm-up"));
    CHECK(has(result.err, "benchmark 10/12 calls, "));
    CHECK(has(result.err, "L=64 mean fp32, warm-up"));
    CHECK(has(result.err, "benchmark 12/12 calls, "));
    CHECK(has(result.out, "tokens/s"));
    CHECK(has(result.out, "forecast MB"));
    CHECK(has(result.out, "forecast s"));
    CHECK(has(result.out, "weights"));
    const std::string csv = etc::read_file(folder / "benchmark.csv");
    CHECK(std::count(csv.begin(), csv.end(), '\n') == 7);
    CHECK(has(csv, "forecast_seconds,forecast_cpu_seconds"));
    CHECK(has(csv, "\nsum,64,4,"));
    CHECK(has(result.out, "benchmark.csv, time.svg, memory.svg"));
    for (const char* name : {"time.svg", "memory.svg"})
      CHECK(has(etc::read_file(folder / name), ">residual scores mean, measured</text>"));
  }
  if (etc::cpu_offers(etc::ComputeType::bf16)) {
    const Result rounded = place.run({"benchmark", "--preset", "tiny", "--lengths", "32", "--mode", "train",
                                      "--compute", "fp32,bf16", "--repeats", "1", "--threads", "1"});
    INFO(rounded.err);
    CHECK(rounded.code == 0);
    CHECK(has(rounded.out, "bf16      32"));
  }
  const Result forecast = place.run({"benchmark", "--preset", "tiny", "--lengths", "64", "--forecast"});
  CHECK(forecast.code == 0);
  CHECK(has(forecast.out, "forecast MB forecast s"));
  CHECK(!has(forecast.out, "seconds"));
}

TEST_CASE("a forecast says what a run would take and writes nothing", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const Result result = place.run(place.training({"--forecast"}));
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(has(result.out, "expected peak memory "));
  CHECK(has(result.out, "moments"));
  CHECK(!fs::exists(place.folder / "run"));
}

TEST_CASE("a memory limit of the command line is in the run's configuration, or is refused", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const Result low = place.run(place.training({"--memory-limit", "1MB"}));
  CHECK(low.code == 1);
  CHECK(has(low.err, "the memory limit of 1.0 MB is too low"));
  CHECK(place.run(place.training({"--memory-limit", "much"})).code == 2);
  CHECK(!fs::exists(place.folder / "run"));
  const Result fits = place.run(place.training({"--memory-limit", "8GB", "--micro-batch-tokens", "50"}));
  CHECK(fits.code == 0);
  CHECK(has(fits.err, "memory limit 8.00 GB: --micro-batch-tokens 50 --grad-checkpointing-period 0"));
  CHECK(etc::read_json_file(place.folder / "run/config.json")["training"]["micro_batch_tokens"] == 50);
}

TEST_CASE("a memory limit of the benchmark chooses checkpointing, or says which length fits", "[tasks][slow]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  // 353 MB, or 243 MB with checkpointing, plus the program's own memory; four times the length takes 925 MB.
  const Result sweep =
      place.run({"benchmark", "--preset", "tiny", "--lengths", "32768,131072", "--tokens-per-global", "1024", "--mode",
                 "train", "--residual", "off", "--threads", "1", "--forecast", "--memory-limit", "345MB"});
  INFO(sweep.out << sweep.err);
  CHECK(sweep.code == 0);
  CHECK(has(sweep.out, "checkpointing period 1"));
  CHECK(has(sweep.out, "does not fit; L = "));
}

TEST_CASE("the profile of a run names its operators, and the trace is a file of events", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const fs::path trace = place.folder / "trace.json", model = place.folder / "run/best";
  const auto traced = [&](Words words, const char* name) {
    words.insert(words.end(), {"--trace", trace});
    const Result result = place.run(words);
    INFO(result.err);
    REQUIRE(result.code == 0);
    const etc::Json events = etc::read_json_file(trace)["traceEvents"];
    CHECK(std::any_of(events.begin(), events.end(), [&](const etc::Json& event) { return event["name"] == name; }));
    fs::remove(trace);
    return result.err;
  };
  const std::string table = traced(place.training({"--profile"}), "global_attention_backward");
  for (const char* part : {"operator", "calls", "GFLOP/s", "GB/s", "optimizer", "limits, 1 threads"}) {
    CAPTURE(part);
    CHECK(has(table, part));
  }
  const fs::path data = place.folder / "train.h5";
  traced({"eval", "--model", model, "--data", data}, "long_attention");
  traced({"predict", "--model", model, "--data", data, "--output", place.folder / "p.json"}, "long_attention");
  traced({"encode", "--model", model, "--data", data, "--output", place.folder / "s.h5"}, "long_attention");
  const Result scored = place.run({"eval", "--task", "wikihop", "--predictions", "p", "--gold", "g", "--profile"});
  CHECK(scored.code == 2);
  CHECK(has(scored.err, "--profile and --trace go with --model"));
}

}  // namespace
