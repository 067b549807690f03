// Generated records: the same for equal seeds, accepted by the preparation, answerable by their hops alone.
#include "data/sample/wikihop_sample.h"

#include <algorithm>
#include <map>
#include <set>

#include "data/text/unicode.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/wikihop/feed.h"
#include "tasks/wikihop/prepare_config.h"
#include "tasks/wikihop/schema.h"
#include "tests/support/catch.h"
#include "tests/tasks/sample_checks.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/wikihop/small_records.h"

using namespace etc;
using data::WikihopSampleOptions;

namespace {

WikihopSampleOptions options(std::int64_t hops, std::int64_t candidates = 4, std::int64_t long_tokens = 256) {
  WikihopSampleOptions o;
  o.records = 30;
  o.hops = hops;
  o.candidates = candidates;
  o.long_tokens = long_tokens;
  return o;
}

// Lower-case words of a text, without punctuation.
std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  std::string word;
  for (const char c : data::lower_case(text) + " ") {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    } else if (!word.empty()) {
      result.push_back(std::move(word));
      word.clear();
    }
  }
  return result;
}

std::set<std::string> word_set(const std::string& text) {
  const auto all = words(text);
  return {all.begin(), all.end()};
}

// The prepared examples of generated records, as a loader hands them out.
std::vector<data::LoadedExample> prepared(const WikihopSampleOptions& o) {
  const test::TemporaryFolder folder;
  write_wikihop_sample(o, folder.path());
  const wikihop::WikihopPreparation preparation({}, data::load_tokenizer(folder / "vocab.txt"),
                                                data::load_splitter("icu"));
  test::prepare_sample(preparation, folder, "train", ".json");
  const data::DatasetReader reader({folder / "out.h5"}, wikihop::schema());
  std::vector<data::LoadedExample> examples;
  for (std::int64_t i = 0; i < reader.size(); ++i) examples.push_back({i, i, reader.read(i)});
  return examples;
}

const std::vector<std::int64_t>& numbers(const data::LoadedExample& example, const char* name) {
  return std::get<std::vector<std::int64_t>>(example.features.at(name));
}

const char* const kFiles[] = {"train.json", "dev.json", "vocab.txt"};

}  // namespace

TEST_CASE("equal seeds give equal sample files, other seeds others", "[wikihop][sample]") {
  const test::TemporaryFolder folder;
  WikihopSampleOptions o = options(2);
  test::check_equal_seeds(o, data::write_wikihop_sample, folder, ".json");
  const Json train = read_json_file(folder / "a" / "train.json"), dev = read_json_file(folder / "a" / "dev.json");
  CHECK(train.size() == 30);
  CHECK(dev.size() == 6);
  // A record depends only on its number and split: generating more records does not change the first ones, and dev
  // differs from train.
  o.seed = 1;
  o.records = 40;
  write_wikihop_sample(o, folder / "d");
  const Json more = read_json_file(folder / "d" / "train.json");
  for (std::size_t i = 0; i < train.size(); ++i) CHECK(more[i] == train[i]);
  CHECK(dev[0]["supports"] != train[0]["supports"]);
}

TEST_CASE("sample records are prepared without a fault, within their length, with known words", "[wikihop][sample]") {
  for (const auto& o : {options(1), options(2), options(1, 20, 400), options(2, 8, 512), options(1, 2, 1000)}) {
    CAPTURE(o.hops, o.candidates, o.long_tokens);
    const test::TemporaryFolder folder;
    write_wikihop_sample(o, folder.path());
    wikihop::PrepareConfig config;
    config.long_seq_len = o.long_tokens;
    const wikihop::WikihopPreparation preparation(config, data::load_tokenizer(folder / "vocab.txt"),
                                                  data::load_splitter("icu"));
    const auto tokenizer = data::load_tokenizer(folder / "vocab.txt");
    CHECK(tokenizer->piece_id("[UNK]") == 100);
    for (const char* split : {"train", "dev"}) {
      const prepare::Counts counts = test::prepare_sample(preparation, folder, split, ".json");
      CHECK(counts.records == (split == std::string("train") ? 30 : 6));
      CHECK(counts.examples == counts.records);
      CHECK(counts.codes.empty());  // neither rejects nor warnings, nothing cut
      const data::DatasetReader reader({folder / "out.h5"}, wikihop::schema());
      std::int64_t unknown = 0, unlinked_answers = 0;
      for (std::int64_t i = 0; i < reader.size(); ++i) {
        const data::Example example = reader.read(i);
        const auto& ids = std::get<std::vector<std::int64_t>>(example.at("long_token_ids"));
        unknown += std::count(ids.begin(), ids.end(), 100);
        unlinked_answers += (std::get<std::int64_t>(example.at("flags")) & wikihop::kAnswerNotMentioned) != 0;
        CHECK(std::get<std::int64_t>(example.at("num_candidates")) == o.candidates);
      }
      CHECK(unknown == 0);
      CHECK(unlinked_answers == 0);
    }
  }
}

TEST_CASE("the answer is one of different candidates, all mentioned equally often", "[wikihop][sample]") {
  for (const std::int64_t hops : {1, 2}) {
    std::set<std::size_t> places;
    for (std::int64_t i = 0; i < 50; ++i) {
      CAPTURE(hops, i);
      const auto record = data::wikihop_sample_record(options(hops), "dev", i);
      const auto at = std::find(record.candidates.begin(), record.candidates.end(), record.answer);
      REQUIRE(at != record.candidates.end());
      places.insert(static_cast<std::size_t>(at - record.candidates.begin()));
      CHECK(std::set<std::string>(record.candidates.begin(), record.candidates.end()).size() == 4);
      std::set<std::int64_t> mentions;
      for (const std::string& candidate : record.candidates) {
        std::int64_t count = 0;
        for (const std::string& document : record.supports) {
          const auto all = words(document);
          count += std::count(all.begin(), all.end(), candidate);
        }
        mentions.insert(count);
      }
      CHECK(mentions.size() == 1);
      CHECK(*mentions.begin() > 0);
    }
    CHECK(places.size() == 4);  // the answer's position gives no hint
  }
}

TEST_CASE("local attention of any radius and depth carries nothing from the query to a document", "[wikihop][sample]") {
  // The answer's document is outside the local windows of the query: the question reaches it, and the answer reaches
  // the candidates, only through global tokens. Radius 8 is that of the demo; 1000 spans whole examples.
  constexpr std::int64_t kQueryType = 3, kSentenceType = 1;  // task-wikihop 2.5
  for (const std::int64_t hops : {1, 2}) {
    const auto examples = prepared(options(hops));
    REQUIRE(examples.size() == 30);
    for (const std::int64_t radius : {8, 1000}) {
      CAPTURE(hops, radius);
      EtcConfig model;
      model.vocab_size = 512;
      model.local_radius = radius;
      model.relative_pos_max_distance = 8;
      model.relative_vocab_size = 20;
      std::int64_t answers = 0, local_pairs = 0;
      for (const data::LoadedExample& example : examples) {
        const EncoderInput input = wikihop::feed({&example, 1}, model, {}, "sample");
        const auto& types = numbers(example, "long_token_type_ids");
        const auto& links = numbers(example, "l2g_linked_ids");
        const std::int64_t label = wikihop::label_id(example.features), length = std::ssize(types), W = 2 * radius + 1;
        std::vector<std::int64_t> reached;  // positions that any number of local layers mixes with the query
        std::vector<bool> seen(types.size());
        const auto reach = [&](std::int64_t i) {
          if (!seen[static_cast<std::size_t>(i)]) reached.push_back(i);
          seen[static_cast<std::size_t>(i)] = true;
        };
        for (std::int64_t i = 0; i < length; ++i) {
          if (types[static_cast<std::size_t>(i)] == kQueryType) reach(i);
        }
        REQUIRE(!reached.empty());
        for (std::size_t next = 0; next < reached.size(); ++next) {
          const std::int64_t i = reached[next];
          CHECK(types[static_cast<std::size_t>(i)] == kQueryType);
          for (std::int64_t w = 0; w < W; ++w) {
            if (input.labels.l2l[i * W + w] == sparse::kMasked) continue;
            local_pairs += w != radius ? 1 : 0;
            reach(i + w - radius);
          }
        }
        for (std::size_t i = 0; i < types.size(); ++i) {
          if (types[i] != kSentenceType || links[i] != label) continue;
          ++answers;
          CHECK(!seen[i]);
        }
      }
      CHECK(answers == 30);    // the answer is mentioned once in every example
      CHECK(local_pairs > 0);  // the query's tokens do see each other
    }
  }
}

TEST_CASE("training records have one to all documents of each kind, the answer's always", "[wikihop][sample]") {
  for (const std::int64_t hops : {1, 2}) {
    std::map<std::int64_t, std::int64_t> with_facts, with_bridges;  // records by number of documents of a kind
    for (std::int64_t i = 0; i < 400; ++i) {
      CAPTURE(hops, i);
      const auto record = data::wikihop_sample_record(options(hops), "train", i);
      REQUIRE(record.candidates.size() == 4);
      const std::string subject = words(record.query).back();
      std::int64_t facts = 0, bridges = 0;
      bool answer = false, asked = false;
      for (const std::string& document : record.supports) {
        const auto all = word_set(document);
        const bool is_fact = std::any_of(record.candidates.begin(), record.candidates.end(),
                                         [&](const std::string& candidate) { return all.contains(candidate); });
        ++(is_fact ? facts : bridges);
        answer = answer || all.contains(record.answer);
        asked = asked || all.contains(subject);
      }
      CHECK(answer);
      CHECK(asked);
      ++with_facts[facts];
      ++with_bridges[bridges];
    }
    // Four standard deviations are at most 40.
    const auto near = [](std::int64_t count, std::int64_t expected) { return std::abs(count - expected) < 40; };
    if (hops == 1) {
      for (std::int64_t count = 1; count <= 4; ++count) CHECK(near(with_facts[count], 100));
      CHECK(with_bridges == std::map<std::int64_t, std::int64_t>{{0, 400}});
      continue;
    }
    REQUIRE(with_bridges.size() == 5);
    // Four lessons, with 0 … 4, 1, 1 … 4 and 4 bridges; records of the last lesson have all facts, others 1 … 4.
    for (std::int64_t count = 1; count <= 3; ++count) CHECK(near(with_facts[count], 75));
    CHECK(near(with_facts[4], 175));
    CHECK(near(with_bridges[0], 20));
    CHECK(near(with_bridges[1], 145));
    for (std::int64_t count = 2; count <= 3; ++count) CHECK(near(with_bridges[count], 45));
    CHECK(near(with_bridges[4], 145));
  }
}

TEST_CASE("a quarter of the two-hop training records asks for the region itself, no held-out record does",
          "[wikihop][sample]") {
  for (const std::string file : {"train", "dev"}) {
    std::int64_t direct = 0;
    for (std::int64_t i = 0; i < 400; ++i) {
      const auto record = data::wikihop_sample_record(options(2), file, i);
      const std::string asked = words(record.query).back();
      direct += std::any_of(record.supports.begin(), record.supports.end(), [&](const std::string& document) {
        const auto all = word_set(document);
        return all.contains(asked) && all.contains(record.answer);
      });
    }
    CAPTURE(file);
    CHECK(std::abs(direct - (file == "train" ? 100 : 0)) <= (file == "train" ? 35 : 0));  // four standard deviations
  }
}

TEST_CASE("training records ask for some names far more often than for others, held-out ones do not",
          "[wikihop][sample]") {
  for (const std::string file : {"train", "dev"}) {
    std::map<std::string, std::int64_t> asked;
    for (std::int64_t i = 0; i < 800; ++i) {
      ++asked[words(data::wikihop_sample_record(options(1), file, i).query).back()];
    }
    CAPTURE(file);
    REQUIRE(asked.size() == 8);
    std::vector<std::int64_t> counts;
    for (const auto& [name, count] : asked) counts.push_back(count);
    std::sort(counts.rbegin(), counts.rend());
    // Shares of the ranks 1 … 8: 1/rank over their sum 2.718 (0.368, 0.184, …, 0.046), or 1/8 each; four standard
    // deviations are at most 0.069.
    CHECK(std::abs(static_cast<double>(counts[0]) / 800 - (file == "train" ? 0.368 : 0.125)) < 0.069);
    CHECK(std::abs(static_cast<double>(counts[7]) / 800 - (file == "train" ? 0.046 : 0.125)) < 0.069);
  }
}

TEST_CASE("one document answers a question of one hop, two linked ones a question of two", "[wikihop][sample]") {
  for (const std::int64_t hops : {1, 2}) {
    for (std::int64_t i = 0; i < 50; ++i) {
      CAPTURE(hops, i);
      const auto record = data::wikihop_sample_record(options(hops), "dev", i);
      const std::string subject = words(record.query).back();
      std::vector<std::set<std::string>> with_subject, with_answer;
      for (const std::string& document : record.supports) {
        const auto all = word_set(document);
        if (all.contains(subject)) with_subject.push_back(all);
        if (all.contains(record.answer)) with_answer.push_back(all);
      }
      REQUIRE(with_subject.size() == 1);
      REQUIRE(with_answer.size() == 1);
      if (hops == 1) {
        CHECK(with_subject == with_answer);
        continue;
      }
      CHECK(with_subject != with_answer);
      // The name that both documents share occurs in no other document.
      std::int64_t bridges = 0;
      for (const std::string& word : with_subject[0]) {
        if (!with_answer[0].contains(word)) continue;
        const auto holders = std::count_if(record.supports.begin(), record.supports.end(),
                                           [&](const std::string& text) { return word_set(text).contains(word); });
        bridges += holders == 2 && word.size() > 4 ? 1 : 0;
      }
      CHECK(bridges >= 1);
    }
  }
}

TEST_CASE("sample options that cannot be meant are refused", "[wikihop][sample]") {
  WikihopSampleOptions none = options(1);
  none.records = 0;
  test::check_refused_options(
      data::write_wikihop_sample, options(1),
      {none, options(0), options(3), options(1, 1), options(1, 1000, 100000), options(1, 4, 5), options(2, 4, -1)});

  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const auto run = [&](const std::vector<std::string>& extra) {
    std::vector<std::string> arguments = {"sample", "--output", (folder / "out").string()};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return test::run_program(arguments, folder.path());
  };
  CHECK(run({}).code == 2);
  CHECK(run({"--task", "wikihop", "--hops", "3"}).code == 2);
  const auto mistyped = run({"--task", "wikihip"});
  CHECK(mistyped.code == 2);
  CHECK(mistyped.err.find("wikihop") != std::string::npos);
  CHECK(run({"--task", "wikihop", "--record", "5"}).err.find("--records") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "out"));
  CHECK(run({"--task", "wikihop", "--records", "5", "--seed", "7"}).code == 0);
  for (const char* name : kFiles) CHECK(std::filesystem::exists(folder / "out" / name));
}
