// The program on OpenKP pages, from raw records to official scores: real pages and generated ones.
#include <algorithm>
#include <map>
#include <sstream>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/backends.h"
#include "tasks/openkp/prediction_file.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/model.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/numbers.h"
#include "tests/tasks/train/program.h"

using namespace etc;
namespace fs = std::filesystem;

namespace {

// Lines "name number" of standard output.
std::map<std::string, double> numbers_of(const std::string& out) {
  std::map<std::string, double> numbers;
  std::istringstream lines(out);
  std::string name;
  for (double value = 0; lines >> name >> value;) numbers[name] = value;
  return numbers;
}

// Runs commands in one folder; every one must end with exit code 0 unless another is expected.
struct Session {
  test::TemporaryFolder folder;

  std::string path(const std::string& name) const { return (folder / name).string(); }

  test::Result run(const std::vector<std::string>& arguments, int expected = 0) const {
    const test::Result result = test::run_program(arguments, folder.path());
    INFO(fmt::format("{}", fmt::join(arguments, " ")));
    INFO(result.err);
    REQUIRE(result.code == expected);
    return result;
  }

  void prepare(const std::string& raw, const std::string& vocab, const std::string& split, const std::string& name,
               const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"prepare", "--task",  "openkp", "--split",  split,     "--input",
                                          raw,       "--vocab", vocab,    "--output", path(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    run(arguments);
  }
};

// Options of a model that trains in seconds with any vocabulary size.
std::vector<std::string> seconds_model(std::int64_t vocab_size) {
  return {"--vocab-size",          std::to_string(vocab_size),
          "--hidden-size",         "16",
          "--num-hidden-layers",   "1",
          "--intermediate-size",   "32",
          "--num-attention-heads", "2"};
}

}  // namespace

TEST_CASE("a real page goes through prepare, train, eval, predict and the official score", "[tasks][openkp]") {
  const auto data = test::real_data_folder();
  if (!test::program() || !data) return test::skip("no program or no real data");
  const Session s;
  const std::string raw = (*data / "openkp/openkp_readme_1.jsonl").string();
  const std::string vocab = (*data / "vocab/bert_uncased_vocab.txt").string();
  s.prepare(raw, vocab, "dev", "page.h5", {"--first-occurrence", "true"});
  const std::string config = (test::source_folder() / "tasks/configs/openkp_tiny.json").string();
  for (const bool max_loss : {false, true}) {
    const std::string run_folder = s.path(max_loss ? "max" : "plain");
    std::vector<std::string> train = {"train",
                                      "--config",
                                      config,
                                      "--data",
                                      s.path("page.h5"),
                                      "--output",
                                      run_folder,
                                      "--epochs",
                                      "60",
                                      "--batch-size",
                                      "1",
                                      "--eval-data",
                                      s.path("page.h5"),
                                      "--max-loss",
                                      max_loss ? "true" : "false",
                                      "--learning-rate",
                                      "0.003"};
    const auto model = seconds_model(30522);
    train.insert(train.end(), model.begin(), model.end());
    s.run(train);
    const auto scores = numbers_of(s.run({"eval", "--model", run_folder + "/best", "--data", s.path("page.h5")}).out);
    CHECK(scores.at("pages") == 1);
    CHECK(scores.at("F1@5") > 0);  // the model overfits one page
    const std::string predictions = s.path("p.jsonl");
    s.run({"predict", "--model", run_folder + "/best", "--data", s.path("page.h5"), "--output", predictions});
    const auto official =
        numbers_of(s.run({"eval", "--task", "openkp", "--predictions", predictions, "--gold", raw}).out);
    for (const char* name : {"P@1", "R@3", "F1@3", "F1@5"})
      CHECK(official.at(name) == Approx(scores.at(name)).margin(1e-6));
    // --n-best-output lists more phrases, with their scores; the prediction file holds the first of them.
    s.run({"predict", "--model", run_folder + "/best", "--data", s.path("page.h5"), "--n-best-output",
           s.path("n.jsonl"), "--n-best", "20"});
    const Json many = read_json_file(s.path("n.jsonl")).at("answers");
    const Json five = read_json_file(predictions).at("KeyPhrases");
    REQUIRE(many.size() == 20);
    for (std::size_t i = 1; i < many.size(); ++i) CHECK(many[i].at("score") <= many[i - 1].at("score"));
    for (std::size_t i = 0; i < 5; ++i) CHECK(many[i].at("text") == five.at(i).at(0));
    // The raw record gives the same phrases.
    s.run(
        {"predict", "--model", run_folder + "/best", "--input", raw, "--vocab", vocab, "--output", s.path("r.jsonl")});
    CHECK(read_file(s.path("r.jsonl")) == read_file(predictions));
    const auto shown =
        s.run({"predict", "--model", run_folder + "/best", "--input", raw, "--vocab", vocab, "--show", "1"});
    CHECK_THAT(shown.out, Catch::Contains("http://1000projects.org/") && Catch::Contains("[["));
  }
}

TEST_CASE("rejected pages are predicted without phrases and count as 0", "[tasks][openkp]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Session s;
  s.run({"sample", "--task", "openkp", "--records", "50", "--seed", "3", "--output", s.path("sample")});
  // Ten dev pages: in one of them no phrase lies within an element, another one occurs twice.
  std::istringstream dev(read_file(s.path("sample/dev.jsonl")));
  std::string line, changed;
  for (int i = 0; std::getline(dev, line); ++i) {
    Json page = Json::parse(line);
    if (i == 2) {
      // The phrase crosses from the heading into the first element after it.
      const std::string text = page["text"];
      const std::size_t third = text.find(' ', text.find(' ') + 1);
      page["KeyPhrases"] =
          Json::array({Json::array({text.substr(third + 1, text.find(' ', third + 1) - third - 1), "The"})});
    }
    changed += json_line(page) + "\n";
    if (i == 4) changed += json_line(page) + "\n";
  }
  test::write_file(s.path("dev.jsonl"), changed);
  const std::string vocab = s.path("sample/vocab.txt");
  s.prepare(s.path("sample/train.jsonl"), vocab, "train", "train.h5");
  s.prepare(s.path("dev.jsonl"), vocab, "dev", "dev.h5", {"--max-rejects", "1"});
  const std::string config = (test::source_folder() / "tasks/configs/openkp_tiny.json").string();
  std::vector<std::string> train = {"train",    "--config",    config,     "--data", s.path("train.h5"),
                                    "--output", s.path("run"), "--epochs", "1"};
  const auto model = seconds_model(512);
  train.insert(train.end(), model.begin(), model.end());
  s.run(train);
  const auto scores = numbers_of(s.run({"eval", "--model", s.path("run/best"), "--data", s.path("dev.h5")}).out);
  CHECK(scores.at("pages") == 10);
  s.run({"predict", "--model", s.path("run/best"), "--data", s.path("dev.h5"), "--output", s.path("p.jsonl")});
  const auto official = numbers_of(
      s.run({"eval", "--task", "openkp", "--predictions", s.path("p.jsonl"), "--gold", s.path("dev.jsonl")}).out);
  for (const char* name : {"P@1", "R@3", "F1@3", "F1@5"})
    CHECK(official.at(name) == Approx(scores.at(name)).margin(1e-6));
  CHECK(official.at("pages") == 10);
  // Raw pages need no labels, so the page rejected above gets phrases here; the repeated page has one line.
  s.run({"predict", "--model", s.path("run/best"), "--input", s.path("dev.jsonl"), "--vocab", vocab, "--output",
         s.path("r.jsonl")});
  const openkp::PhraseMap from_raw = openkp::read_predictions(s.path("r.jsonl"));
  const openkp::PhraseMap from_data = openkp::read_predictions(s.path("p.jsonl"));
  CHECK(from_raw.size() == 10);
  CHECK(from_data.size() == 10);
  std::int64_t empty = 0;
  for (const auto& [url, phrases] : from_data) {
    if (phrases.empty()) {
      ++empty;
      CHECK(!from_raw.at(url).empty());
    } else {
      CHECK(from_raw.at(url) == phrases);
    }
  }
  CHECK(empty == 1);
}

TEST_CASE("hidden states of pages hold what their elements look like", "[tasks][openkp]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Session s;
  s.run({"sample", "--task", "openkp", "--records", "5", "--output", s.path("sample")});
  s.prepare(s.path("sample/train.jsonl"), s.path("sample/vocab.txt"), "train", "train.h5");
  std::vector<std::string> train = {"train",    "--task",      "openkp",  "--data", s.path("train.h5"),
                                    "--output", s.path("run"), "--steps", "1",      "--batch-size",
                                    "4"};
  const auto model = seconds_model(512);
  train.insert(train.end(), model.begin(), model.end());
  s.run(train);
  s.run({"encode", "--model", s.path("run/best"), "--data", s.path("train.h5"), "--output", s.path("states.h5")});
  const auto states = test::GoldenFile(s.path("states.h5")).read_ragged<float>("examples/long");
  register_cpu_backend();
  const LoadedModel loaded = load_model(s.path("run/best"));
  loaded.model->encoder->release_kernels();
  const auto reader = open_dataset({s.path("train.h5")}, loaded.model->task->schema(), {});
  const std::vector<data::LoadedExample> first = {{0, 0, reader->read(0)}};
  const auto encoded = [&](bool with_looks) {
    Tape tape(Recording::off);
    EncoderInput input = loaded.model->task->feed(first, "train.h5");
    if (with_looks) loaded.model->task->add_to_embeddings(tape, first, input);
    const Tensor x = loaded.model->encoder->forward(tape, input, ForwardOptions{}).long_states.value();
    return std::vector<float>(x.data(), x.data() + x.size());
  };
  CHECK(test::same_bits(states.at(0), encoded(true)));
  CHECK(!test::same_bits(states.at(0), encoded(false)));
}
