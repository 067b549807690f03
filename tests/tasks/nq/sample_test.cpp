// Generated pages: the same for equal seeds, accepted by the preparation in both forms, answerable by their question.
#include "data/sample/nq_sample.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "data/sample/word_source.h"
#include "etc_core/base/error.h"
#include "tasks/nq/prepare.h"
#include "tasks/nq/schema.h"
#include "tasks/prepare/run.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/nq/small_records.h"
#include "tests/tasks/raw_records.h"
#include "tests/tasks/sample_checks.h"

using namespace etc;
using data::NqSampleOptions;

namespace {

NqSampleOptions options(std::int64_t mixed, std::int64_t candidates = 6, std::int64_t long_tokens = 180) {
  NqSampleOptions o;
  o.records = 60;
  o.candidates = candidates;
  o.long_tokens = long_tokens;
  o.mixed = mixed;
  return o;
}

std::string kind_of(const Json& annotation) {
  if (annotation["long_answer"]["start_token"] < 0) return "none";
  if (annotation["yes_no_answer"] != "NONE") return annotation["yes_no_answer"];
  const std::size_t shorts = annotation["short_answers"].size();
  return shorts == 0 ? "long" : shorts == 1 ? "one short" : "two short";
}

// Subjects and answers that a question names.
std::set<std::string> names_in(const std::string& question) {
  const std::vector<std::string> all = data::names(0, 140);
  std::istringstream words(question);
  std::set<std::string> found;
  for (std::string word; words >> word;) {
    if (std::find(all.begin(), all.end(), word) != all.end()) found.insert(word);
  }
  return found;
}

nq::PrepareConfig config(const data::Tokenizer& tokenizer, const Json& given) {
  Json settings = nq::prepare_settings().defaults();
  settings.update({{"seq_len", 64}, {"stride", 32}, {"global_seq_len", 40}});
  settings.update(given);
  nq::PrepareConfig config = nq::read_prepare_config(settings, prepare::Labels::required);
  nq::resolve_special_ids(config, tokenizer);
  return config;
}

}  // namespace

TEST_CASE("equal seeds give equal pages, other seeds others", "[tasks][nq][sample]") {
  const test::TemporaryFolder folder;
  const NqSampleOptions o = options(8);
  test::check_equal_seeds(o, data::write_nq_sample, folder, ".jsonl");
  CHECK(test::read_raw_records(folder / "a" / "train.jsonl", data::RecordLayout::lines).size() == 60);
  CHECK(test::read_raw_records(folder / "a" / "dev.jsonl", data::RecordLayout::lines).size() == 12);
}

TEST_CASE("pages are prepared without a fault, with known words, bytes and tokens in step", "[tasks][nq][sample]") {
  for (const auto& o : {options(0), options(8), options(8, 2, 1000), options(0, 20, 400)}) {
    CAPTURE(o.mixed, o.candidates, o.long_tokens);
    const test::TemporaryFolder folder;
    write_nq_sample(o, folder.path());
    const auto tokenizer = data::load_tokenizer(folder / "vocab.txt");
    CHECK(tokenizer->piece_id("[UNK]") == 100);
    CHECK(tokenizer->piece_id("[CLS]") == 101);
    for (const char* split : {"train", "dev"}) {
      const Json settings = {{"is_train", split == std::string("train")}};
      const nq::NqPreparation preparation(config(*tokenizer, settings), data::load_tokenizer(folder / "vocab.txt"));
      const prepare::Counts counts = test::prepare_sample(preparation, folder, split, ".jsonl");
      CHECK(counts.rejected == 0);
      CHECK(counts.codes.empty());
      const data::DatasetReader reader({folder / "out.h5"}, nq::schema(false));
      CHECK(reader.gold_size() == counts.records);
      std::int64_t unknown = 0, several = 0;
      for (std::int64_t i = 0; i < reader.size(); ++i) {
        const data::Example example = reader.read(i);
        const auto& ids = std::get<std::vector<std::int64_t>>(example.at("token_ids"));
        unknown += std::count(ids.begin(), ids.end(), 100);
        several += std::get<std::int64_t>(example.at("window_index")) > 0;
      }
      CHECK(unknown == 0);
      CHECK(several > 0);
    }
    for (const auto& record : test::read_raw_records(folder / "dev.jsonl", data::RecordLayout::lines)) {
      const std::string html = record.value["document_html"];
      for (const Json& token : record.value["document_tokens"]) {
        const std::size_t begin = token["start_byte"], end = token["end_byte"];
        REQUIRE(html.substr(begin, end - begin) == token["token"].get<std::string>());
      }
      CHECK(record.value["annotations"].size() == 5);
    }
  }
}

TEST_CASE("the question's subject stands in one block, which holds the answer", "[tasks][nq][sample]") {
  std::set<std::string> kinds;
  std::set<std::int64_t> blocks;
  for (std::int64_t i = 0; i < 300; ++i) {
    CAPTURE(i);
    const Json record = data::nq_sample_record(options(8), "dev", i);
    const Json& annotation = record["annotations"][0];
    const Json& long_answer = annotation["long_answer"];
    const std::string kind = kind_of(annotation);
    std::vector<std::string> words;
    for (const Json& token : record["document_tokens"]) words.push_back(token["token"]);
    const std::set<std::string> asked = names_in(record["question_text"]);
    std::int64_t top_level = 0, holders = 0;
    for (const Json& candidate : record["long_answer_candidates"]) {
      if (!candidate["top_level"].get<bool>()) continue;
      ++top_level;
      const std::int64_t start = candidate["start_token"], end = candidate["end_token"];
      const bool holds = std::any_of(words.begin() + start, words.begin() + end, [&](std::string word) {
        word[0] = static_cast<char>(std::tolower(word[0]));
        return asked.contains(word);
      });
      if (!holds) continue;
      ++holders;
      if (kind == "NO") continue;  // asks for names of two blocks
      CHECK(start == long_answer["start_token"]);
      CHECK(end == long_answer["end_token"]);
    }
    CHECK(top_level == 7);  // with the introduction
    CHECK(holders == (kind == "none" ? 0 : kind == "NO" ? 2 : 1));
    const std::int64_t index = long_answer["candidate_index"];
    CHECK((index >= 0) == (kind != "none"));
    if (index >= 0) {
      CHECK(record["long_answer_candidates"][static_cast<std::size_t>(index)]["start_token"] ==
            long_answer["start_token"]);
      blocks.insert(index);
    }
    kinds.insert(kind);
  }
  CHECK(kinds == std::set<std::string>{"none", "YES", "NO", "long", "one short", "two short"});
  CHECK(blocks.size() >= 6);
  CHECK_FALSE(blocks.contains(0));
}

TEST_CASE("training pages are a curriculum: fewer blocks, popular subjects", "[tasks][nq][sample]") {
  std::set<std::int64_t> sizes;
  std::map<std::string, std::int64_t> subjects;
  for (std::int64_t i = 0; i < 300; ++i) {
    const Json record = data::nq_sample_record(options(0), "train", i);
    std::int64_t top_level = 0;
    for (const Json& candidate : record["long_answer_candidates"]) top_level += candidate["top_level"].get<bool>();
    sizes.insert(top_level);
    CHECK(record["annotations"].size() == 1);
    ++subjects[*names_in(record["question_text"]).begin()];
  }
  CHECK(sizes == std::set<std::int64_t>{2, 3, 4, 5, 6, 7});  // with the introduction
  CHECK(subjects.at(data::names(0, 1)[0]) > 70);             // 110 expected, 38 if all were equally popular
}

TEST_CASE("sample options of Natural Questions that cannot be meant are refused", "[tasks][nq][sample]") {
  NqSampleOptions none = options(0);
  none.records = 0;
  test::check_refused_options(
      data::write_nq_sample, options(0),
      {none, options(0, 1), options(0, 21, 10000), options(0, 6, 100), options(11), options(-1)});
}
