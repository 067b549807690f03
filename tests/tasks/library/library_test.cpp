// The public header, used as by an external program: from raw records to answers.
#include "tasks/library/longetc.h"

#include <csignal>
#include <filesystem>
#include <regex>
#include <sstream>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tasks/inference/text_encoder.h"
#include "tasks/registry.h"
#include "tests/data/text/small_byte_bpe.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using Catch::Contains;

namespace {

// Generated records of a task, prepared, and a model that has made one step.
class Scene {
 public:
  explicit Scene(const std::string& task) : task_(task) {
    for (const TaskEntry& entry : task_entries()) {
      if (entry.name == task) entry.sample.write({{"records", 10}}, folder_ / "sample", etc::data::nothing_before);
    }
    prepare("train");
    longetc::train(options("1"));
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string vocab() const { return path("sample/vocab.txt"); }

  longetc::PrepareReport prepare(const std::string& split) const {
    longetc::PrepareOptions options;
    options.task = task_;
    options.split = split;
    options.inputs = {path("sample/" + split + ".json")};
    options.vocabulary = vocab();
    options.output = path(split + ".h5");
    return longetc::prepare(options);
  }
  longetc::TrainOptions options(const std::string& steps, const std::string& run = "run") const {
    longetc::TrainOptions options;
    options.config = R"({"task": {"name": ")" + task_ + R"("}, "data": {"train": [")" + path("train.h5") +
                     R"("], "vocab": ")" + vocab() + R"("}, "model": {"vocab_size": 30522, "hidden_size": 32,
      "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "local_radius": 16,
      "relative_pos_max_distance": 8, "relative_vocab_size": 20}, "training": {"batch_size": 4, "steps": )" +
                     steps + "}}";
    options.output = path(run);
    return options;
  }
  Json record() const { return read_json_file(path("sample/dev.json")).at(0); }

 private:
  std::string task_;
  test::TemporaryFolder folder_;
};

const Scene& hotpotqa() {
  static const Scene scene("hotpotqa");
  return scene;
}

std::string message_of(const std::function<void()>& call, longetc::Error::Kind kind) {
  try {
    call();
  } catch (const longetc::Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL("nothing was thrown");
  return "";
}

bool same(const float* a, const float* b, std::int64_t count) {
  return std::equal(a, a + count, b);
}

constexpr auto kUsage = longetc::Error::Kind::usage, kFailure = longetc::Error::Kind::failure,
               kInterrupted = longetc::Error::Kind::interrupted;
const std::vector<std::string> kTexts = {"The old harbour is quiet. Nobody is there.", "The tower is famous."};

}  // namespace

TEST_CASE("the public header includes standard headers alone", "[library]") {
  std::istringstream lines(read_file(std::string(std::getenv("ETC_SOURCE_DIR")) + "/tasks/library/longetc.h"));
  int includes = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#include")) continue;
    ++includes;
    CHECK(std::regex_match(line, std::regex("#include <[a-z_]+>")));
  }
  CHECK(includes > 5);
}

TEST_CASE("texts of a loaded model have the states that the program gives them", "[library]") {
  const Scene& scene = hotpotqa();
  longetc::Model model(scene.path("run"));
  CHECK(model.task() == "hotpotqa");
  CHECK(Json::parse(model.config()).at("model").at("hidden_size") == 32);
  const longetc::Encoded all = model.encode(kTexts, longetc::States::long_states);
  TextEncoderOptions options;
  options.model = scene.path("run/best");
  const TextEncoder encoder("test", options);
  for (std::size_t t = 0; t < kTexts.size(); ++t) {
    const EncodedText expected = encoder.encode(kTexts[t], "text");
    REQUIRE(all.offsets[t + 1] - all.offsets[t] == expected.long_states.rows());
    CHECK(same(all.states.get() + all.offsets[t] * all.columns, expected.long_states.data(),
               expected.long_states.size()));
    CHECK(all.read[t] == expected.tokens.read);
    CHECK(all.cut[t] == 0);
    const longetc::Encoded mean = model.encode({kTexts[t]}, longetc::States::mean);
    CHECK(std::vector<float>(mean.states.get(), mean.states.get() + 32) == expected.mean);
    const longetc::Encoded global = model.encode({kTexts[t]}, longetc::States::global_states);
    CHECK(global.rows == (t == 0 ? 2 : 1));
    CHECK(same(global.states.get(), expected.global_states.data(), expected.global_states.size()));
  }
  // Their ids, given directly, are the same input, also after records were answered.
  for (int answered = 0; answered < 2; ++answered) {
    const longetc::TokenInput input{all.tokens.ids.data(), all.tokens.offsets.data(), 2, all.sentences.data()};
    const longetc::Encoded again = model.encode(input, longetc::States::long_states);
    CHECK(again.offsets == all.offsets);
    CHECK(same(again.states.get(), all.states.get(), all.rows * all.columns));
    model.predict(json_line(scene.record()));
  }
  const longetc::Encoded none = model.encode(std::vector<std::string>(), longetc::States::mean);
  CHECK(none.rows == 0);
  CHECK(none.columns == 32);
}

TEST_CASE("records and documents are answered as the program answers them", "[library]") {
  const Scene& scene = hotpotqa();
  longetc::Model model(scene.path("run"));
  const Json answer = Json::parse(model.predict(json_line(scene.record())));
  CHECK(answer.at("id") == scene.record().at("_id"));
  CHECK(answer.contains("answer"));
  const std::string document = "<html><p>Rosa lives in Turin. Turin is old.</p></html>";
  const Json asked = Json::parse(model.ask(document, "Where does Rosa live?"));
  CHECK(asked.at("tokens").at("cut") == 0);
  CHECK(asked.at("evidence").is_array());
  CHECK(Json::parse(model.ask(document, "Where does Rosa live?", longetc::DocumentForm::plain))
            .at("tokens")
            .at("read")
            .get<int>() > asked.at("tokens").at("read").get<int>());  // in the plain form tags are text
  CHECK_THAT(message_of([&] { model.keyphrases(document); }, kUsage), Contains("expected a model of openkp"));
  CHECK_THAT(message_of([&] { model.ask("", "Who?"); }, kFailure), Contains("document: the document is empty"));
  CHECK_THAT(message_of([&] { model.ask(document, ""); }, kUsage), Contains("expected a question"));
  CHECK_THAT(message_of([&] { model.predict("{}"); }, kFailure), Contains("record: "));
  CHECK_THAT(message_of([&] { model.predict("{"); }, kFailure), Contains("record"));
}

TEST_CASE("options and inputs that cannot be meant are refused at once", "[library]") {
  const std::string run = hotpotqa().path("run");
  const auto refused = [&](const std::function<void(longetc::LoadOptions&)>& set, const char* message) {
    longetc::LoadOptions options;
    set(options);
    CHECK_THAT(message_of([&] { longetc::Model(run, options); }, kUsage), Contains(message));
  };
  refused([](auto& options) { options.compute = "foo"; }, "foo");
  refused([](auto& options) { options.scores = "foo"; }, "expected int32 or fp16, got \"foo\"");
  refused([](auto& options) { options.decoding = "[]"; }, "decoding: expected an object, got []");
  refused([](auto& options) { options.decoding = R"({"sf_treshold": 1})"; }, "did you mean sf_threshold?");
  refused([](auto& options) { options.decoding = R"({"sf_threshold": "much"})"; },
          "decoding: sf_threshold: expected a number");
  refused([](auto& options) { options.memory_limit = -1; }, "memory_limit: expected 0 (none) or");
  refused([](auto& options) { options.max_long_tokens = -1; }, "max_long_tokens: expected 0 (as many as usual) or");
  refused([](auto& options) { options.splitter = "foo"; }, "splitter: records of task hotpotqa are not cut");
  longetc::LoadOptions broken;
  broken.decoding = "{";
  CHECK_THAT(message_of([&] { longetc::Model(run, broken); }, kFailure), Contains("longetc: decoding"));
  broken.decoding = R"({"sf_threshold": 0.5})";
  broken.compute = "auto";
  longetc::Model model(run, broken);
  CHECK_THAT(message_of([&] { model.ask("The tower is old.", "caf\xE9?"); }, kUsage),
             Contains("document: expected a question in UTF-8, got one whose byte 3 is not"));
  const std::int64_t offsets[] = {0, 1};
  CHECK_THAT(message_of(
                 [&] {
                   model.encode({nullptr, offsets, -1, nullptr}, longetc::States::mean);
                 },
                 kUsage),
             Contains("texts: expected 0 or more, got -1"));
  CHECK_THAT(message_of(
                 [&] {
                   model.encode({nullptr, offsets, 1, nullptr}, longetc::States::mean);
                 },
                 kUsage),
             Contains("ids: expected a vector, got null"));
}

TEST_CASE("a caller stops a training, which goes on later to the same bits", "[library]") {
  const Scene& scene = hotpotqa();
  std::vector<std::int64_t> seen;
  const auto two_steps = [&](const longetc::ProgressReport& report) {
    if (report.what != "train") return true;
    CHECK(report.total == 4);
    seen.push_back(report.done);
    return report.done < 2;
  };
  CHECK_THAT(message_of([&] { longetc::train(scene.options("4", "stopped"), two_steps); }, kInterrupted),
             Contains("stopped at step 2 of 4, everything is saved"));
  CHECK(seen == std::vector<std::int64_t>{1, 2});
  CHECK_THROWS_AS(longetc::train(scene.options("4", "thrown"),
                                 [](const longetc::ProgressReport&) -> bool { throw std::length_error("mine"); }),
                  std::length_error);
  CHECK(std::filesystem::exists(scene.path("thrown/last/model.safetensors")));
  longetc::TrainOptions more;
  more.output = scene.path("stopped");
  CHECK(longetc::train(more).step == 4);
  longetc::train(scene.options("4", "whole"));
  CHECK(read_file(scene.path("stopped/best/model.safetensors")) ==
        read_file(scene.path("whole/best/model.safetensors")));
}

TEST_CASE("a signal stops a training, and the caller's handlers are there again", "[library]") {
  const Scene& scene = hotpotqa();
  struct sigaction before {
  }, after{};
  sigaction(SIGPIPE, nullptr, &before);
  REQUIRE(before.sa_handler != SIG_IGN);
  const auto kill = [](const longetc::ProgressReport& report) { return report.what != "train" || raise(SIGTERM) == 0; };
  CHECK_THAT(message_of([&] { longetc::train(scene.options("4", "killed"), kill); }, kInterrupted),
             Contains("SIGTERM: stopped at step 1 of 4"));
  sigaction(SIGPIPE, nullptr, &after);
  CHECK(after.sa_handler == before.sa_handler);
}

TEST_CASE("preparing says what it did and writes over nothing that it reads", "[library]") {
  const Scene& scene = hotpotqa();
  const longetc::PrepareReport report = scene.prepare("dev");
  CHECK(report.records == 2);
  CHECK(report.examples == 2);
  CHECK(report.complete);
  CHECK_THAT(report.summary, Contains("records: 2"));
  longetc::PrepareOptions options;
  options.task = "hotpotqa";
  CHECK_THAT(message_of([&] { longetc::prepare(options); }, kUsage), Contains("inputs: expected a value"));
  options.inputs = {scene.path("sample/dev.json")};
  options.vocabulary = scene.vocab();
  options.output = scene.vocab();
  CHECK_THAT(message_of([&] { longetc::prepare(options); }, kUsage), Contains("would be written over"));
  options.output = scene.path("other.h5");
  options.report = scene.path("sample/../other.h5");
  CHECK_THAT(message_of([&] { longetc::prepare(options); }, kUsage), Contains("expected another file than the output"));
  options.report = "";
  options.split = "training";
  CHECK_THAT(message_of([&] { longetc::prepare(options); }, kUsage),
             Contains("split: expected one of train, dev, test, got \"training\""));
  options.split = "dev";
  options.settings = R"({"long_seq": 7})";
  CHECK_THAT(message_of([&] { longetc::prepare(options); }, kUsage), Contains("long_seq"));
  options.settings = "{}";
  CHECK_THAT(message_of([&] { longetc::prepare(options, [](const auto&) { return false; }); }, kInterrupted),
             Contains("prepare"));
  CHECK(!std::filesystem::exists(options.output));
}

TEST_CASE("messages reach the receiver that was set and nobody else", "[library]") {
  std::vector<std::string> messages;
  longetc::set_log([&](longetc::Level level, const std::string& message) {
    CHECK(level == longetc::Level::info);
    messages.push_back(message);
  });
  const longetc::Model model(hotpotqa().path("run"));
  longetc::set_log(nullptr);
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], Contains("is a run: its best checkpoint"));
  const longetc::Model again(hotpotqa().path("run"));
  CHECK(messages.size() == 1);
}

TEST_CASE("pieces spell the text that they were cut from", "[library]") {
  const longetc::Tokenizer tokenizer = longetc::Model(hotpotqa().path("run")).tokenizer();
  const longetc::Tokens tokens = tokenizer.encode({"The tower", "", "old harbours"});
  REQUIRE(tokens.offsets.size() == 4);
  CHECK(tokens.offsets[1] == tokens.offsets[2]);
  CHECK(tokenizer.decode(tokens.ids.data(), 2) == "the tower");
  CHECK(tokenizer.id_of(tokenizer.piece(7)) == 7);
  CHECK(tokenizer.kind() == "wordpiece");
  CHECK_THAT(message_of([&] { tokenizer.piece(-1); }, kUsage), Contains("got -1"));
  CHECK_THAT(message_of([&] { tokenizer.id_of("no such piece"); }, kFailure), Contains("no such piece"));
}

TEST_CASE("pieces of bytes and of characters spell their text with its blanks", "[library]") {
  const test::TemporaryFolder folder;
  test::small_byte_bpe(folder.path());
  const longetc::Tokenizer bytes((folder / "vocab.json").string());
  const std::string text = "the rivers in Köln, and  more";
  longetc::Tokens tokens = bytes.encode({text});
  CHECK(bytes.decode(tokens.ids.data(), tokens.ids.size()) == text);
  tokens = bytes.encode({"ö"});
  REQUIRE(tokens.ids.size() == 2);
  CHECK(bytes.decode(tokens.ids.data(), 1).empty());  // half a character
  test::write_file(folder / "letters.chars", "#characters\nU+0061\nU+0062\nU+0020\nU+00F6\n");
  const longetc::Tokenizer letters((folder / "letters.chars").string());
  tokens = letters.encode({"ab öa"});
  CHECK(letters.decode(tokens.ids.data(), tokens.ids.size()) == "ab öa");
}

TEST_CASE("threads are those that were set", "[library]") {
  const int before = longetc::threads();
  longetc::set_threads(2);
  CHECK(longetc::threads() == 2);
  longetc::set_threads(before);
  CHECK_THAT(message_of([] { longetc::set_threads(-1); }, kUsage), Contains("got -1"));
  CHECK(std::string(longetc::version()) != "");
}
