// etc info describes every file that the program writes, and refuses others.
#include <fmt/format.h>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"
#include "tests/tasks/train/place.h"

namespace {

namespace fs = std::filesystem;
using etc::test::has;
using etc::test::joined;
using etc::test::Result;
using etc::test::Words;

// The beginning of a line of a description.
std::string entry(const std::string& key, const std::string& value) {
  return fmt::format("{:<34} {}", key, value);
}

// Runs every command once, with all results in one folder. The model has positions for one length of a forecast only,
// since each length is timed for up to two seconds.
struct InfoScene {
  etc::test::TemporaryFolder folder;

  InfoScene() {
    must({"sample", "--task", "wikihop", "--records", "20", "--output", folder / "sample"});
    // One record without candidates, so that the report has a line.
    etc::Json records = etc::read_json_file(folder / "sample/dev.json");
    records[0].erase("candidates");
    etc::test::write_file(folder / "bad.json", etc::json_line(records));
    const Words vocabulary = {"--vocab", folder / "sample/vocab.txt", "--splitter", "icu"};
    must(joined({"prepare", "--task", "wikihop", "--split", "train", "--input", folder / "sample/train.json",
                 "--output", folder / "train.h5"},
                vocabulary));
    must(joined({"prepare", "--task", "wikihop", "--split", "dev", "--input", folder / "bad.json", "--output",
                 folder / "dev.h5", "--max-rejects", "1"},
                vocabulary));
    must(joined({"train", "--task", "wikihop", "--data", folder / "train.h5", "--eval-data", folder / "dev.h5",
                 "--output", folder / "run", "--log-every", "1", "--max-absolute-position-embeddings", "600"},
                etc::test::tiny_training("3")));
    const fs::path model = folder / "run/best";
    must({"predict", "--model", model, "--data", folder / "dev.h5", "--output", folder / "predictions.json",
          "--n-best-output", folder / "answers.jsonl", "--n-best", "3"});
    for (const char* format : {"safetensors", "tf-names"}) {
      must({"convert", "--to", format, model, "--output", folder / format});
    }
    must({"sample", "--task", "openkp", "--records", "5", "--output", folder / "openkp"});
    must({"encode", "--model", model, "--data", folder / "dev.h5", "--output", folder / "states.h5"});
    must({"benchmark", "--preset", "tiny", "--lengths", "32", "--repeats", "1", "--output", folder / "lengths"});
    must({"analyze", "--model", model, "--data", folder / "dev.h5", "--gradients", "2", "--output",
          folder / "analysis"});
    must({"analyze", "--model", model, "--compare", folder / "run/last", "--data", folder / "dev.h5", "--output",
          folder / "comparison"});
    etc::test::write_file(folder / "texts.json", R"(["Who ruled Gibren?", "Sumar."])");
    must({"encode", "--model", model, "--vocab", folder / "sample/vocab.txt", "--text", folder / "texts.json",
          "--states", "long", "--output", folder / "states.npy"});
  }

  Result run(const Words& words) const { return etc::test::run_program(words, folder.path()); }
  void must(const Words& words) const {
    const Result result = run(words);
    INFO(result.err);
    REQUIRE(result.code == 0);
  }
  fs::path events() const {
    for (const auto& entry : fs::directory_iterator(folder / "run")) {
      if (has(entry.path().filename().string(), "tfevents")) return entry.path();
    }
    return {};
  }
};

// Made once for all tests, which add files to it and change none.
const InfoScene& info_scene() {
  static const InfoScene once;
  return once;
}

TEST_CASE("info tells what each file is that the program writes", "[cli]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const InfoScene& scene = info_scene();
  const auto told = [&](const fs::path& path, const Words& parts) {
    const Result result = scene.run({"info", path});
    INFO(path << "\n" << result.out << result.err);
    CHECK(result.code == 0);
    for (const std::string& part : parts) {
      CAPTURE(part);
      CHECK(has(result.out, part));
    }
  };
  const fs::path& folder = scene.folder.path();
  told(folder / "train.h5", {"data set", "wikihop", "20 read, 0 rejected", "examples/long_token_ids/values"});
  told(folder / "dev.h5", {"4 read, 1 rejected"});
  told(folder / "dev.h5.rejects.jsonl", {"report of a preparation", "faults", "reject "});
  told(folder / "train.h5.rejects.jsonl", {"report of a preparation"});
  told(folder / "run", {"run ", entry("step", "3"), "best evaluation", "accuracy", "checkpoint",
                        entry("train", "3 lines, steps 1 to 3"), "section training"});
  told(folder / "run/config.json", {"configuration", "hidden_size", "parameters"});
  told(folder / "run/metrics.jsonl", {"metrics of a run", "learning_rate", "eval"});
  told(folder / "run/best", {"model directory", "section task", "  preprocess_config.tokenizer ", "parameters"});
  told(folder / "run/last", {"model directory", entry("step", "3"), "loss of the last step"});
  told(folder / "run/best/config.json", {"configuration"});
  told(folder / "run/best/model.safetensors", {"tensor file", "output_weights"});
  told(folder / "run/last/state.safetensors", {"metadata progress", "metadata identity", "output_weights/adam_m"});
  told(scene.events(), {"TensorBoard events", entry("records", "5")});  // version, 3 steps, 1 evaluation
  told(folder / "predictions.json", {"predictions", entry("entries", "3"), "first"});
  told(folder / "answers.jsonl",
       {"n-best answers", entry("examples", "3"), entry("answers of each", "3"), "first", "\"answers\""});
  told(folder / "safetensors", {"exported model", "safetensors", "hidden_size", "parameters", "attention projections"});
  told(folder / "tf-names", {"exported model", "model.ckpt", "TensorFlow checkpoint", "parameters", "feed-forward"});
  etc::test::write_file(folder / "pages.jsonl",
                        "{\"url\": \"a\", \"KeyPhrases\": [[\"x\"], [\"y\", \"z\"]]}\n"
                        "{\"url\": \"b\", \"KeyPhrases\": []}\n");
  told(folder / "pages.jsonl",
       {"predictions of OpenKP", entry("pages", "2"), entry("key phrases of each", "0 to 2"), "first"});
  told(folder / "openkp/train.jsonl", {"JSON lines", entry("objects", "5"), "first"});
  told(folder / "states.h5", {"hidden_states", "examples/long/values", "longest example"});
  told(folder / "sample/train.json", {"JSON array", entry("elements", "20")});
  told(folder / "lengths/benchmark.csv", {"table", entry("rows", "2"), "columns"});

  told(folder / "analysis",
       {entry("analysis of attention", (folder / "analysis").string()), entry("model", (folder / "run/best").string()),
        entry("  data", (folder / "dev.h5").string()), entry("  task of the data", "wikihop"),
        entry("  examples", "3 of at most 8,192, "), entry("  query groups", "all, "), "  attention long", "mass_l2l",
        "  attention global", "entropy_normalised, ", "  gradient norms", " of 2 examples", " in "});
  told(folder / "analysis/summary.json", {"analysis of attention", "  attention long"});
  told(folder / "comparison", {"run/best\n", "run/last\n", "model_1/analysis.h5", "model_2/analysis.h5"});
  told(folder / "states.npy", {"NumPy array", entry("type", "float32"), entry("shape", "[8, 16]"),
                               entry("values", "128"), entry("bytes of the values", "512")});
  told(folder / "states.npy.offsets.npy", {entry("type", "int64"), entry("shape", "[3]")});

  const Result forecast = scene.run({"info", folder / "run/best", "--forecast"});
  INFO(forecast.err);
  CHECK(forecast.code == 0);
  CHECK(has(forecast.out, "inference of one example:"));
  CHECK(has(forecast.out, "training step of one example:"));
  CHECK(has(forecast.out, "moments"));
  CHECK(scene.run({"info", folder / "train.h5", "--forecast"}).code != 0);
  const Result unknown = scene.run({"info", folder / "sample/vocab.txt"});
  CHECK(unknown.code == 2);
  CHECK(has(unknown.err, "expected a folder of a run, a model or an analysis, or a file *.json"));
}

TEST_CASE("info refuses damaged files with a message", "[cli]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const InfoScene& scene = info_scene();
  const auto failed = [&](const char* name, const std::string& bytes, const std::string& part) {
    etc::test::write_file(scene.folder / name, bytes);
    const Result result = scene.run({"info", scene.folder / name});
    INFO(result.err);
    CHECK((result.code == 1 || result.code == 2));
    CHECK(has(result.err, part));
  };
  failed("a.jsonl", "no JSON\n", "a.jsonl: line 1: expected a line of metrics");
  failed("a.json", "{", "a.json");
  failed("b.json", "7", "expected a JSON object or array, got number");
  failed("a.h5", "text", "a.h5");
  failed("a.safetensors", "text", "a.safetensors");
  failed("a.tfevents.1", "text", "got no whole record");
  // An incomplete last line comes from a killed run: reported, not refused.
  const std::string metrics = etc::read_file(scene.folder / "run/metrics.jsonl");
  fs::create_directory(scene.folder / "killed");
  etc::test::write_file(scene.folder / "killed/metrics.jsonl", metrics + "{\"step\": 9, \"ki");
  const Result half = scene.run({"info", scene.folder / "killed/metrics.jsonl"});
  CHECK(half.code == 0);
  CHECK(has(half.out, "other lines"));
}

TEST_CASE("info describes damaged analyses or names what is wrong with them", "[cli]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const InfoScene& scene = info_scene();
  const etc::test::TemporaryFolder folder;
  fs::create_directory(folder / "analysis");
  const std::string summary = etc::read_file(scene.folder / "analysis/summary.json");
  const auto run = [&](const std::string& name, const fs::path& shown, const std::string& bytes) {
    etc::test::write_file(folder / name, bytes);
    const Result result = etc::test::run_program({"info", shown}, folder.path());
    CAPTURE(bytes.size(), result.out, result.err);
    CHECK((result.code == 0 || result.code == 1));
    if (result.code == 1) CHECK(has(result.err, shown.filename().string()));
    CHECK(!has(result.err, "json.exception"));
    return result.code;
  };
  for (std::size_t part = 0; part < 16; ++part) {
    CHECK(run("analysis/summary.json", folder / "analysis", summary.substr(0, summary.size() * part / 16)) == 1);
  }
  CHECK(run("analysis/summary.json", folder / "analysis", summary + "\n") == 0);
  int refused = 0;  // which ones depends on the length of the paths in the summary
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    refused += run("analysis/summary.json", folder / "analysis", etc::test::mutate(summary, seed));
  }
  CHECK(refused > 0);

  // Every member of another type is named.
  const auto wrong = [&](const char* place, const etc::Json& value, const std::string& part) {
    etc::Json json = etc::parse_json(summary, "summary");
    json[etc::Json::json_pointer(place)] = value;
    etc::test::write_file(folder / "analysis/summary.json", etc::json_text(json));
    const Result result = etc::test::run_program({"info", folder / "analysis"}, folder.path());
    CAPTURE(place, result.err);
    CHECK(result.code == 1);
    CHECK(has(result.err, part));
  };
  wrong("/models", 1, "models: expected a list, got number");
  wrong("/models/0", "x", "models[0]: expected an object, got string");
  wrong("/models/0/layers", "x", "models[0].layers: expected an integer, got \"x\"");
  wrong("/models/0/data", etc::Json{1}, "models[0].data: expected a list of strings");
  wrong("/models/0/operators", 7, "models[0].operators: expected a list");
  wrong("/models/0/operators/1", 7, "models[0].operators[1]: expected an object");
  wrong("/models/0/operators/0/queries", true, "models[0].operators[0].queries: expected an integer");
  wrong("/models/0/operators/0/mean_over_heads_by_layer", 7, "mean_over_heads_by_layer: expected an object");
  wrong("/models/0/relative_tables", 7, "models[0].relative_tables: expected a list");
  wrong("/models/0/gradient_norms", 7, "models[0].gradient_norms: expected an object");
}

// The number in a line of a description; 0: no such line.
std::int64_t number_of(const std::string& description, const std::string& key) {
  const std::size_t line = description.find("\n" + entry(key, ""));
  if (line == std::string::npos) return 0;
  std::int64_t number = 0;
  for (std::size_t at = line + 1 + entry(key, "").size(); at < description.size(); ++at) {
    const char letter = description[at];
    if (letter == ',') continue;
    if (letter < '0' || letter > '9') break;
    number = 10 * number + (letter - '0');
  }
  return number;
}

TEST_CASE("the parts of a dense encoder's parameters add up, its feed-forward layers among them", "[cli]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const etc::test::TemporaryFolder folder;
  const std::string file = folder / "c.json";
  for (const char* positions : {R"("max_absolute_position_embeddings": 16)",
                                R"("max_absolute_position_embeddings": 0, "relative_positions": "etc")"}) {
    CAPTURE(positions);
    etc::test::write_file(file,
                          R"({"model": {"kind": "dense", "vocab_size": 50, "hidden_size": 8, "norm": "pre_ln",
      "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, )" +
                              std::string(positions) + "}}");
    const Result result = etc::test::run_program({"info", file}, folder.path());
    INFO(result.out << result.err);
    REQUIRE(result.code == 0);
    CHECK(number_of(result.out, "  feed-forward") == 2 * (8 * 32 + 32 + 32 * 8 + 8));
    CHECK(number_of(result.out, "  attention projections") == 2 * 4 * (8 * 8 + 8));
    CHECK(number_of(result.out, "  heads and others") == 0);
    std::int64_t sum = 0;
    for (const char* part : {"embeddings", "attention projections", "relative tables", "feed-forward", "layer norms"}) {
      sum += number_of(result.out, std::string("  ") + part);
    }
    CHECK(sum == number_of(result.out, "parameters"));
  }
}

}  // namespace
