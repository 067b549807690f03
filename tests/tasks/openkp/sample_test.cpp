// Generated pages: the same for equal seeds, accepted by the preparation, answerable by heading and topic alone.
#include "data/sample/openkp_sample.h"

#include <algorithm>
#include <set>

#include "etc_core/base/error.h"
#include "tasks/openkp/prepare.h"
#include "tasks/openkp/schema.h"
#include "tasks/prepare/run.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/sample_checks.h"

using namespace etc;
using data::OpenkpSampleOptions;

namespace {

OpenkpSampleOptions options(std::int64_t topics = 4, std::int64_t long_tokens = 84) {
  OpenkpSampleOptions o;
  o.records = 30;
  o.topics = topics;
  o.long_tokens = long_tokens;
  return o;
}

const char* const kFiles[] = {"train.jsonl", "dev.jsonl", "vocab.txt"};

}  // namespace

TEST_CASE("equal seeds give equal sample pages, other seeds others", "[tasks][openkp][sample]") {
  const test::TemporaryFolder folder;
  OpenkpSampleOptions o = options();
  test::check_equal_seeds(o, data::write_openkp_sample, folder, ".jsonl");
  // A page depends only on its number and split: generating more pages does not change the first ones, and dev differs
  // from train.
  o.seed = 1;
  o.records = 40;
  write_openkp_sample(o, folder / "d");
  CHECK(read_file(folder / "d" / "train.jsonl").starts_with(read_file(folder / "a" / "train.jsonl")));
  CHECK(data::openkp_sample_record(o, "dev", 0).at("text") != data::openkp_sample_record(o, "train", 0).at("text"));
}

TEST_CASE("sample pages are prepared without a fault, within their length, with known words",
          "[tasks][openkp][sample]") {
  for (const auto& o : {options(), options(2, 66), options(10, 400)}) {
    CAPTURE(o.topics, o.long_tokens);
    const test::TemporaryFolder folder;
    write_openkp_sample(o, folder.path());
    openkp::PrepareConfig config;
    config.long_max_length = o.long_tokens;
    const openkp::OpenkpPreparation preparation(config, data::load_tokenizer(folder / "vocab.txt"));
    for (const char* split : {"train", "dev"}) {
      const prepare::Counts counts = test::prepare_sample(preparation, folder, split, ".jsonl");
      CHECK(counts.records == (split == std::string("train") ? 30 : 6));
      CHECK(counts.examples == counts.records);
      CHECK(counts.codes.empty());  // neither rejects nor warnings, nothing cut
      const data::DatasetReader reader({folder / "out.h5"}, openkp::schema());
      std::int64_t unknown = 0;
      for (std::int64_t i = 0; i < reader.size(); ++i) {
        const data::Example example = reader.read(i);
        const auto& ids = std::get<std::vector<std::int64_t>>(example.at("long_token_ids"));
        unknown += std::count(ids.begin(), ids.end(), 100);
        CHECK(std::get<std::vector<std::int64_t>>(example.at("label_start_idx")).size() == 3);
      }
      CHECK(unknown == 0);
    }
  }
}

TEST_CASE("the key phrases of a sample page stand behind its heading's topic, out of local reach",
          "[tasks][openkp][sample]") {
  std::set<std::int64_t> places;
  for (std::int64_t i = 0; i < 50; ++i) {
    const Json page = data::openkp_sample_record(options(), "dev", i);
    const Json elements = Json::parse(page.at("VDOM").get<std::string>());
    const std::string heading = elements[0].at("text");
    const std::string topic = heading.substr(heading.rfind(' ') + 1);
    std::vector<std::string> phrases;
    for (const Json& words : page.at("KeyPhrases")) phrases.push_back(fmt::format("{}", fmt::join(words, " ")));
    std::int64_t meant = 0, lists = 0;
    for (std::size_t e = 1; e < elements.size(); ++e) {
      const std::string text = elements[e].at("text");
      if (text.find(" offers ") == std::string::npos) continue;
      ++lists;
      CHECK(elements[e].at("start_idx") >= data::kOpenkpSampleGap);
      const bool holds_all = std::all_of(phrases.begin(), phrases.end(), [&](const std::string& phrase) {
        return (text + " ").find(" " + phrase + " ") != std::string::npos;
      });
      const bool holds_one = std::any_of(phrases.begin(), phrases.end(), [&](const std::string& phrase) {
        return (text + " ").find(" " + phrase + " ") != std::string::npos;
      });
      CHECK(holds_all == holds_one);
      CHECK(holds_all == text.starts_with(topic + " "));
      if (holds_all) places.insert(lists);
      meant += holds_all;
    }
    CHECK(meant == 1);
    CHECK(lists == 4);
  }
  CHECK(places.size() == 4);  // the position gives no hint
}

TEST_CASE("training pages list one to all topics, always the one that is meant", "[tasks][openkp][sample]") {
  std::set<std::int64_t> counts;
  for (std::int64_t i = 0; i < 50; ++i) {
    const Json page = data::openkp_sample_record(options(), "train", i);
    const std::string text = page.at("text");
    const std::string phrase = page.at("KeyPhrases")[0][0];
    CHECK(text.find(" " + phrase + " ") != std::string::npos);
    std::int64_t lists = 0;
    for (std::size_t at = text.find(" offers "); at != std::string::npos; at = text.find(" offers ", at + 1)) ++lists;
    counts.insert(lists);
  }
  CHECK(counts == std::set<std::int64_t>{1, 2, 3, 4});
}

TEST_CASE("page options that cannot be meant are refused", "[tasks][openkp][sample]") {
  OpenkpSampleOptions none = options();
  none.records = 0;
  test::check_refused_options(data::write_openkp_sample, options(),
                              {none, options(1), options(11, 1000), options(4, 80), options(4, -5)});
}
