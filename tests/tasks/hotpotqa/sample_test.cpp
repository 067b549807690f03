// Generated records: reproducible, without faults, and answerable only by the paragraph that the question asks for.
#include "data/sample/hotpotqa_sample.h"

#include <map>
#include <set>

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/tasks/hotpotqa/examples.h"
#include "tests/tasks/sample_checks.h"

using namespace etc;
using data::HotpotqaSampleOptions;
using data::HotpotqaSampleRecord;

namespace {

HotpotqaSampleOptions options(std::int64_t hops, std::int64_t yes_no = 0) {
  HotpotqaSampleOptions o;
  o.records = 20;
  o.hops = hops;
  o.yes_no = yes_no;
  o.long_tokens = 128;
  return o;
}

const std::vector<std::string>& sentences_of(const HotpotqaSampleRecord& record, const std::string& title) {
  for (const auto& [name, sentences] : record.context) {
    if (name == title) return sentences;
  }
  FAIL("no paragraph " << title);
  return record.context[0].second;
}

// The words of a text without punctuation. The last word is the name asked for: "Who ruled A?" or "Is A ruled by X?".
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else if (c != '?' && c != '.') {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace

TEST_CASE("equal seeds give equal HotpotQA sample files, other seeds others", "[hotpotqa][sample]") {
  const test::TemporaryFolder folder;
  const HotpotqaSampleOptions o = options(2);
  test::check_equal_seeds(o, data::write_hotpotqa_sample, folder, ".json");
  CHECK(read_json_file(folder / "a" / "train.json").size() == 20);
  CHECK(read_json_file(folder / "a" / "dev.json").size() == 4);
  CHECK(read_json_file(folder / "a" / "train.json")[0].at("question") !=
        read_json_file(folder / "a" / "dev.json")[0].at("question"));
}

TEST_CASE("HotpotQA samples are prepared without a fault, within their length, with known words",
          "[hotpotqa][sample]") {
  for (const std::int64_t hops : {1, 2}) {
    const test::TemporaryFolder folder;
    write_hotpotqa_sample(options(hops, 5), folder.path());
    hotpotqa::PrepareConfig config = test::hotpotqa_config(hotpotqa::Parity::repaired, 128, 64);
    const hotpotqa::HotpotqaPreparation preparation(config, data::load_tokenizer(folder / "vocab.txt"));
    std::set<std::int64_t> types;
    for (const auto& raw : test::read_raw_records(folder / "train.json", data::RecordLayout::array)) {
      const auto converted = preparation.convert(raw);
      CHECK(test::fault_words(converted.faults).empty());
      REQUIRE(converted.examples.size() == 1);
      const data::Example& example = converted.examples[0];
      const auto& ids = std::get<std::vector<std::int64_t>>(example.at("long_token_ids"));
      CHECK(std::find(ids.begin(), ids.end(), 100) == ids.end());  // [UNK]
      CHECK(ids.size() <= 128);
      types.insert(std::get<std::int64_t>(example.at("answer_types")));
      const auto& facts = std::get<std::vector<std::int64_t>>(example.at("supporting_facts"));
      // Each supported paragraph has three positive globals: itself, its title, its sentence.
      CHECK(std::count(facts.begin(), facts.end(), 1) == 3 * hops);
    }
    CHECK(types == std::set<std::int64_t>{0, 1, 2});
  }
}

TEST_CASE("the paragraph of the subject, or the one it names, answers", "[hotpotqa][sample]") {
  for (const std::int64_t hops : {1, 2}) {
    for (std::int64_t i = 0; i < 50; ++i) {
      const HotpotqaSampleRecord record = hotpotqa_sample_record(options(hops), "train", i);
      CAPTURE(hops, i, record.question);
      REQUIRE(record.supporting_facts.size() == static_cast<std::size_t>(hops));
      const std::string subject = words_of(record.question).back();
      std::string holder = subject;
      if (hops == 2) {
        const auto& [title, sentence] = record.supporting_facts[1];
        REQUIRE(title == subject);
        holder = words_of(sentences_of(record, title)[static_cast<std::size_t>(sentence)]).back();
      }
      const auto& [title, sentence] = record.supporting_facts[0];
      CHECK(title == holder);
      CHECK(words_of(sentences_of(record, title)[static_cast<std::size_t>(sentence)]).back() == record.answer);
      // All paragraphs have the same number of sentences, so only the name distinguishes them.
      for (const auto& [name, sentences] : record.context) {
        CHECK(sentences.size() == record.context[0].second.size());
        CHECK(sentences[0][0] != ' ');
      }
    }
  }
}

TEST_CASE("held-out records have all paragraphs, training records one to all of each kind", "[hotpotqa][sample]") {
  for (const std::int64_t hops : {1, 2}) {
    std::map<std::size_t, std::int64_t> with;  // training records by their number of paragraphs
    for (std::int64_t i = 0; i < 400; ++i) {
      CHECK(hotpotqa_sample_record(options(hops), "dev", i).context.size() == static_cast<std::size_t>(4 * hops));
      ++with[hotpotqa_sample_record(options(hops), "train", i).context.size()];
    }
    CAPTURE(hops);
    // One kind: 1 … 4 paragraphs, expected 100 times each. Two kinds: 2 … 8 paragraphs, the smallest and the largest
    // number expected 25 times each. The tolerances are four standard deviations.
    REQUIRE(with.size() == (hops == 1 ? 4 : 7));
    CHECK(std::abs(with.begin()->second - (hops == 1 ? 100 : 25)) < (hops == 1 ? 35 : 20));
    CHECK(std::abs(with.rbegin()->second - (hops == 1 ? 100 : 25)) < (hops == 1 ? 35 : 20));
  }
}

TEST_CASE("training records ask for some names far more often than for others, held-out ones do not",
          "[hotpotqa][sample]") {
  for (const std::string file : {"train", "dev"}) {
    std::map<std::string, std::int64_t> asked;
    for (std::int64_t i = 0; i < 800; ++i) {
      ++asked[words_of(hotpotqa_sample_record(options(1), file, i).question).back()];
    }
    CAPTURE(file);
    REQUIRE(asked.size() == 6);
    std::int64_t most = 0, least = 800;
    for (const auto& [name, count] : asked) {
      most = std::max(most, count);
      least = std::min(least, count);
    }
    // Expected shares of the ranks 1 … 6: 1/rank over their sum 2.45 (0.408, 0.204, …, 0.068), or 1/6 each; four
    // standard deviations are at most 0.070.
    CHECK(std::abs(static_cast<double>(most) / 800 - (file == "train" ? 0.408 : 0.167)) < 0.070);
    CHECK(std::abs(static_cast<double>(least) / 800 - (file == "train" ? 0.068 : 0.167)) < 0.070);
  }
}

TEST_CASE("half of the yes-no questions are answered by no, with a name that is there", "[hotpotqa][sample]") {
  std::int64_t yes = 0, no = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    const HotpotqaSampleRecord record = hotpotqa_sample_record(options(1, 10), i % 2 == 0 ? "dev" : "train", i);
    const auto words = words_of(record.question);
    REQUIRE((record.answer == "yes" || record.answer == "no"));
    const auto& [title, sentence] = record.supporting_facts[0];
    CHECK(words[1] == title);
    const bool says = words_of(sentences_of(record, title)[static_cast<std::size_t>(sentence)]).back() == words.back();
    CHECK(says == (record.answer == "yes"));
    bool there = false;
    for (const auto& [name, sentences] : record.context) {
      for (const std::string& text : sentences) there = there || words_of(text).back() == words.back();
    }
    CHECK(there);
    (says ? yes : no) += 1;
  }
  CHECK(yes > 70);
  CHECK(no > 70);
}

TEST_CASE("HotpotQA sample options that cannot be meant are refused", "[hotpotqa][sample]") {
  HotpotqaSampleOptions none = options(1), alone = options(1), cramped = options(2);
  none.records = 0;
  alone.subjects = 1;
  cramped.long_tokens = 62;  // 7 + 8 paragraphs of 7
  test::check_refused_options(data::write_hotpotqa_sample, options(1),
                              {none, options(3), options(1, 11), alone, cramped});
}
