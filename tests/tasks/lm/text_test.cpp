// Texts of a language model: segments, the preparation, generated texts.

#include "data/loader/loader.h"
#include "data/loader/order.h"
#include "data/sample/lm_sample.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/lm/predictions.h"
#include "tests/support/folders.h"
#include "tests/tasks/lm/lm_scene.h"
#include "tests/tasks/stopped_preparation.h"

namespace etc::test {
namespace {

using Catch::Contains;

// What the segments of a data set read and predict, as text; "|" between segments, "#" where a text begins.
struct SegmentTexts {
  std::string reads, labels;
  std::int64_t characters = 0;
};
SegmentTexts texts_of(const LmScene& scene, const std::string& name) {
  const auto vocabulary = data::load_tokenizer(scene.path("v.chars"));
  const auto piece = [&](std::int64_t id) { return id == 0 ? "$" : vocabulary->piece(static_cast<std::int32_t>(id)); };
  SegmentTexts texts;
  for (const data::LoadedExample& loaded : examples_of(scene.path(name))) {
    const data::Example& example = loaded.features;
    const bool begins = std::get<std::int64_t>(example.at("segment")) == 0;
    texts.reads += begins ? "#" : "|";
    texts.labels += begins ? "#" : "|";
    for (const std::int64_t id : std::get<std::vector<std::int64_t>>(example.at("token_ids"))) texts.reads += piece(id);
    for (const std::int32_t id : lm::labels_of({&loaded, 1})) texts.labels += piece(id);
    texts.characters += std::get<std::int64_t>(example.at("characters"));
  }
  return texts;
}

TEST_CASE("every piece of a text and its end is a label once, after the pieces before it", "[lm]") {
  const LmScene scene;
  const prepare::Counts counts = scene.prepare("d.h5", *scene.preparation(4), {"abc\nde", "\xFF", "fa\r\n"});
  const SegmentTexts files = texts_of(scene, "d.h5");
  const std::string unknown = "<unk>";  // the carriage return
  CHECK(files.reads == "#$abc|\nde#$fa" + unknown + "|\n");
  CHECK(files.labels == "#abc\n|de$#fa" + unknown + "\n|$");
  CHECK(files.characters == 10);
  CHECK(counts.records == 2);
  CHECK(counts.examples == 4);
  CHECK(counts.codes.at("ignored invalid_byte") == 1);
  CHECK(counts.codes.at("warn utf8_invalid") == 1);
  CHECK(counts.warned == 1);
  CHECK(counts.codes.at("ignored unknown_piece") == 1);

  scene.prepare("l.h5", *scene.preparation(3, lm::TextEnds::lines), {"ab\n\nabcd\r\n", "f"});
  CHECK(texts_of(scene, "l.h5").reads == "#$ab#$ab|cd#$f");
  CHECK(texts_of(scene, "l.h5").labels == "#ab$#abc|d$#f$");
  CHECK(texts_of(scene, "l.h5").characters == 7);
  scene.prepare("e.h5", *scene.preparation(9, lm::TextEnds::empty_lines), {"\na\nb\n \n\nc"});
  CHECK(texts_of(scene, "e.h5").labels == "#a\nb\n$#c$");
  scene.prepare("one.h5", *scene.preparation(1), {"ab"});
  CHECK(texts_of(scene, "one.h5").reads == "#$|a|b");
  CHECK(texts_of(scene, "one.h5").labels == "#a|b|$");
  CHECK_THROWS_WITH(scene.prepare("none.h5", *scene.preparation(4), {"", "\xFF"}),
                    Contains("no text with a piece of the vocabulary"));
  CHECK_FALSE(std::filesystem::exists(scene.path("none.h5")));
}

TEST_CASE("prepared segments do not depend on how a text is read, and characters of other vocabularies count by lines",
          "[lm]") {
  LmScene scene;
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += i % 61 == 60 ? '\n' : static_cast<char>('a' + i * i % 6);  // several blocks
  scene.prepare("d.h5", *scene.preparation(64), {text});
  const SegmentTexts segments = texts_of(scene, "d.h5");
  std::string labels;
  for (const char c : segments.labels) {
    if (c != '#' && c != '|') labels += c;
  }
  CHECK(labels == text + "$");
  CHECK(segments.characters == std::ssize(text));

  test::write_file(scene.path("v.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\nab\ncd\n");
  lm::PrepareConfig config;
  config.segment_length = 2;
  const lm::LmPreparation words(config, data::load_tokenizer(scene.path("v.txt")));
  scene.prepare("w.h5", words, {"ab cd\n\n cd \n"});
  std::vector<std::int64_t> characters, reads;
  for (const data::LoadedExample& loaded : examples_of(scene.path("w.h5"))) {
    characters.push_back(std::get<std::int64_t>(loaded.features.at("characters")));
    for (const std::int64_t id : std::get<std::vector<std::int64_t>>(loaded.features.at("token_ids")))
      reads.push_back(id);
  }
  CHECK(reads == std::vector<std::int64_t>{3, 4, 5, 5});
  CHECK(characters == std::vector<std::int64_t>{6, 6});  // "ab cd\n"; "\n cd \n"
  test::write_file(scene.path("bad.txt"), "[UNK]\nab\n");
  CHECK_THROWS_WITH(lm::LmPreparation(config, data::load_tokenizer(scene.path("bad.txt"))), Contains("[SEP]"));
}

TEST_CASE("a stopped preparation of texts goes on behind its finished files, to equal bytes", "[lm]") {
  const LmScene scene;
  const auto preparation = scene.preparation(4, lm::TextEnds::lines);
  const std::vector<std::string> texts = {"abc\ndef abc\n", "fade\nxx\xFF\ncab\n", "bad\ncafe\n"};
  scene.prepare("whole.h5", *preparation, texts);
  const std::string report = read_file(scene.path("report.jsonl"));
  REQUIRE(report.find("utf8_invalid") != std::string::npos);
  const auto run = [&] { return scene.prepare("out.h5", *preparation, texts); };
  const auto stop = [&] {
    return stopped_parts(scene.path("out.h5"), scene.path("report.jsonl"), ".rejects.jsonl", run);
  };
  REQUIRE(stop().size() == 2);
  const prepare::Counts counts = run();
  CHECK(read_file(scene.path("out.h5")) == read_file(scene.path("whole.h5")));
  CHECK(read_file(scene.path("report.jsonl")) == report);
  CHECK(counts.records == 7);
  CHECK(counts.codes.at("ignored unknown_piece") == 2);
  CHECK(counts.codes.at("ignored invalid_byte") == 1);
  CHECK_FALSE(std::filesystem::exists(scene.path("out.h5.parts")));
  // The next run uses the parts that were kept.
  stop();
  log::also_to_file(scene.path("log"));
  run();
  for (const char* name : {"text0", "text1"}) {
    CHECK_THAT(read_file(scene.path("log")), Catch::Contains(std::string(name) + " is finished from an earlier run"));
  }
}

TEST_CASE("streams side by side use every example once, in its stream's order", "[lm]") {
  for (const std::int64_t n : {1, 7, 8, 23}) {
    for (std::int64_t streams = 1; streams <= n; ++streams) {
      CAPTURE(n, streams);
      const std::vector<std::int64_t> order = data::stream_order(n, streams);
      REQUIRE(std::ssize(order) == n);
      std::vector<std::int64_t> sorted = order;
      std::sort(sorted.begin(), sorted.end());
      for (std::int64_t i = 0; i < n; ++i) CHECK(sorted[static_cast<std::size_t>(i)] == i);
      // Each example of a batch is continued in the next batch, unless its stream has ended.
      for (std::int64_t i = 0; i + streams < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t next = order[at] + 1;
        bool over = false;
        for (std::int64_t s = 0; s <= streams; ++s) over = over || next == n * s / streams;
        if (over) continue;
        const auto end = order.begin() + std::min<std::int64_t>(n, i + 1 + streams);
        CHECK(std::find(order.begin() + i + 1, end, next) != end);
      }
    }
  }
  CHECK(data::stream_order(7, 3) == std::vector<std::int64_t>{0, 2, 4, 1, 3, 5, 6});
  data::LoaderOptions options;
  options.streams = 3;
  CHECK(data::epoch_order(7, 5, options) == data::stream_order(7, 3));
}

TEST_CASE("generated texts ask for their first letter, farther away than asked", "[lm]") {
  const data::LmSampleOptions options{.records = 40, .distance = 12, .letters = 5};
  for (std::int64_t i = 0; i < 40; ++i) {
    const std::string text = data::lm_sample_text(options, "train", i);
    CAPTURE(text);
    CHECK(text.front() == text.back());
    CHECK(text[text.size() - 2] == '?');
    CHECK((text.front() >= 'A' && text.front() <= 'E'));
    CHECK(text.find_first_of("ABCDE?", 1) == text.size() - 2);
    CHECK((text.size() >= 15 && text.size() <= 21));
    for (std::size_t at = 2; at + 2 < text.size(); ++at) CHECK((text[at] - text[at - 1] + 8) % 8 == 1);
  }
  CHECK(data::lm_sample_text(options, "dev", 0) != data::lm_sample_text(options, "train", 0));
  const TemporaryFolder folder;
  data::write_lm_sample(options, folder / "a");
  data::write_lm_sample(options, folder / "b");
  for (const char* name : {"train.txt", "dev.txt", "vocab.chars"}) {
    CHECK(read_file(folder / "a" / name) == read_file(folder / "b" / name));
  }
  const auto vocabulary = data::load_tokenizer(folder / "a" / "vocab.chars");
  for (const std::int32_t id : vocabulary->encode_ids(read_file(folder / "a" / "train.txt"))) CHECK(id > 1);
  for (const data::LmSampleOptions& bad : {data::LmSampleOptions{.records = 0}, data::LmSampleOptions{.distance = 0},
                                           data::LmSampleOptions{.letters = 27}}) {
    CHECK_THROWS_AS(data::write_lm_sample(bad, folder / "c"), UsageError);
  }
}

}  // namespace
}  // namespace etc::test
