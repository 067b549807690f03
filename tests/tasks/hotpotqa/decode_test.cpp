// Answers and supporting facts from logits: the worked selection, the golden decodes, the prediction file.
#include "tasks/hotpotqa/decode.h"

#include <limits>
#include <map>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/ops/register.h"
#include "tasks/hotpotqa/answer.h"
#include "tasks/hotpotqa/head.h"
#include "tasks/hotpotqa/prediction_file.h"
#include "tasks/hotpotqa/prepare.h"
#include "tasks/text/top_scores.h"
#include "tests/support/catch.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/hotpotqa/examples.h"
#include "tests/tasks/multihop_golden.h"
#include "tests/tasks/raw_records.h"
#include "tests/tasks/shared_tokenizer.h"

using namespace etc;
using namespace etc::hotpotqa;

namespace {

using Numbers = std::vector<std::int64_t>;

// The long sequence of task-hotpotqa 2.8; A.0, A.1, B.0 are globals 6, 7, 10.
const Numbers kTypes = {1, 3, 3, 3, 2, 1, 1, 1, 1, 1, 2, 2, 1, 1};
const Numbers kSentences = {-1, 1, 2, 3, 5, 6, 6, 6, 7, 7, 9, 9, 10, 10};

SpanFilter worked_filter(std::initializer_list<std::size_t> facts) {
  SpanFilter filter;
  filter.long_token_type_ids = kTypes;
  filter.long_sentence_ids = kSentences;
  filter.facts.assign(11, false);
  for (const std::size_t j : facts) filter.facts[j] = true;
  return filter;
}

// Logits that give position i the probability p[i] / Σp.
std::vector<float> logits_of(const std::map<int, double>& probabilities) {
  std::vector<float> logits(kTypes.size(), -50);
  for (const auto& [i, p] : probabilities) logits[static_cast<std::size_t>(i)] = static_cast<float>(std::log(p));
  return logits;
}

// The case's attributes in the HDF5 file are those of its entry in the JSON file, and its settings all occur.
void require_same_case(const test::GoldenFile& file, const std::string& name, const Json& expected) {
  for (const char* text : {"tokenizer", "vocab", "id", "style"}) {
    CHECK(file.string_attribute(name, text) == expected.at(text).get<std::string>());
  }
  for (const char* number : {"long_seq_len", "global_seq_len", "record_index"}) {
    CHECK(file.int_attribute(name, number) == expected.at(number).get<std::int64_t>());
  }
  std::set<Json> settings, encodings, thresholds, lengths;
  for (const Json& one : expected.at("predictions")) {
    const Json &encoding = one.at("encoding"), &threshold = one.at("threshold"), &length = one.at("max_answer_length");
    settings.insert(Json::array({encoding, threshold, length}));
    encodings.insert(encoding);
    thresholds.insert(threshold);
    lengths.insert(length);
  }
  CHECK(encodings == std::set<Json>{"bio", "span"});
  CHECK(thresholds.size() == 4);
  CHECK(lengths.size() == 2);
  CHECK(settings.size() == 2 * 4 * 2);
}

void pad(data::Example& example, const char* name, std::int64_t length, std::int64_t padding) {
  std::get<Numbers>(example.at(name)).resize(static_cast<std::size_t>(length), padding);
}

}  // namespace

TEST_CASE("span selection gives the worked choice", "[tasks][hotpotqa]") {
  ops::register_cpu_ops();
  const auto begin = logits_of({{5, .50}, {12, .30}, {8, .15}, {0, .05}});
  const auto end = logits_of({{6, .45}, {13, .25}, {9, .20}, {12, .10}});
  const auto best = [&](const SpanFilter& filter) {
    const auto spans = span_candidates(begin, end, 4, filter);
    return spans.empty() ? text::TokenSpan{-1, -1} : spans[0].tokens;
  };
  CHECK(best(worked_filter({5, 7, 9, 10})) == text::TokenSpan{12, 13});
  CHECK(best(worked_filter({5, 7, 9})) == text::TokenSpan{8, 9});
  CHECK(best(worked_filter({})) == text::TokenSpan{-1, -1});
  CHECK(best(worked_filter({6})) == text::TokenSpan{5, 6});
  const auto all = span_candidates(begin, end, 4, worked_filter({7, 10}));
  REQUIRE(all.size() == 3);
  CHECK(all[0].score == Approx(0.075));
  // Of two spans with equal scores the one that begins later comes first.
  CHECK(all[1].tokens == text::TokenSpan{12, 12});
  CHECK(all[2].tokens == text::TokenSpan{8, 9});
  SpanFilter narrow = worked_filter({7, 10});
  narrow.max_length = 1;
  CHECK(span_candidates(begin, end, 4, narrow).size() == 1);
}

TEST_CASE("positions of no global token count only where the last slot speaks for them", "[tasks][hotpotqa]") {
  ops::register_cpu_ops();
  SpanFilter filter = worked_filter({6});
  CHECK(!filter.admits({0, 0}));
  filter.fact_of_none = true;
  CHECK(filter.admits({0, 0}));
  CHECK(!filter.admits({1, 1}));  // the question
}

TEST_CASE("BIO runs begin with B or a lone I and end with O", "[tasks][hotpotqa]") {
  std::vector<float> logits;
  for (const char c : std::string("OOOOOBIIBOOOIB")) {
    for (const char winner : {'B', 'I', 'O'}) logits.push_back(c == winner ? 2.0f : 0.0f);
  }
  const auto spans = [&](bool close_last) {
    std::vector<text::TokenSpan> found;
    for (const auto& span : bio_candidates(logits, close_last, worked_filter({6, 7, 10}))) found.push_back(span.tokens);
    return found;
  };
  using Spans = std::vector<text::TokenSpan>;
  CHECK(spans(false) == Spans{{12, 12}, {8, 8}, {5, 7}});
  CHECK(spans(true) == Spans{{13, 13}, {12, 12}, {8, 8}, {5, 7}});
}

TEST_CASE("decodes equal the reference's in every golden case and setting", "[tasks][hotpotqa][golden]") {
  ops::register_cpu_ops();
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("hotpotqa_decode", ".h5");
  if (files.empty() || !data) return test::skip("no golden file hotpotqa_decode*.h5");
  for (const auto& path : files) {
    INFO(path.filename().string());
    const test::GoldenFile file(path);
    auto answers_path = path;
    const Json answers = read_json_file(answers_path.replace_extension(".json"));
    const auto source = *data / "hotpotqa" / file.string_attribute("", "source_file");
    REQUIRE(file.string_attribute("", "source_sha256") == data::sha256_of_file(source));
    REQUIRE(file.string_attribute("", "task") == "hotpotqa");
    const auto& records = test::shared_raw_records(source, data::RecordLayout::array);
    test::Names names;
    for (const Json& expected : answers) {
      const auto name = expected.at("case").get<std::string>();
      names.insert(name);
      INFO(name << " " << expected.at("style"));
      require_same_case(file, name, expected);
      const auto read = [&](const char* set) { return file.read<float>(name + "/" + set).values; };
      const auto begin = read("begin_logits"), end = read("end_logits"), bio = read("bio_logits"),
                 facts = read("supporting_facts_logits"), type = read("answer_type_logits");
      const auto check_top = [&](const std::vector<float>& logits, const std::string& side) {
        const auto indices = file.read<std::int64_t>(name + "/" + side + "_top50_indices").values;
        const auto probabilities = read((side + "_top50_probs").c_str());
        CHECK(text::largest(logits, 50) == indices);
        REQUIRE(probabilities.size() == indices.size());
        const auto ours = text::softmax(logits);
        for (std::size_t i = 0; i < indices.size(); ++i) {
          CHECK(ours[static_cast<std::size_t>(indices[i])] == Approx(probabilities[i]).epsilon(1e-5));
        }
      };
      check_top(begin, "begin");
      check_top(end, "end");

      PrepareConfig config;
      config.long_seq_len = expected.at("long_seq_len");
      config.global_seq_len = expected.at("global_seq_len");
      config.is_training = config.labels_required = false;
      config.parity = Parity::reference;
      config.special_ids = published_special_ids(expected.at("tokenizer") == "sentencepiece");
      const auto vocab = *data / "vocab" / expected.at("vocab").get<std::string>();
      const auto tokenizer = test::shared_tokenizer(vocab);
      const HotpotqaPreparation preparation(config, test::shared_tokenizer(vocab));
      const auto& record = records.at(expected.at("record_index").get<std::size_t>());
      REQUIRE(record.value["_id"] == expected.at("id"));
      data::Example example = preparation.convert(record).examples.at(0);
      pad(example, "long_token_type_ids", config.long_seq_len, 0);
      pad(example, "long_sentence_ids", config.long_seq_len, -1);

      for (const Json& one : expected.at("predictions")) {
        INFO(one.at("encoding") << " threshold " << one.at("threshold") << " length " << one.at("max_answer_length"));
        DecodeOptions options;
        options.encoding = one.at("encoding") == "bio" ? AnswerEncoding::bio : AnswerEncoding::span;
        options.sf_threshold = one.at("threshold");
        options.max_answer_length = one.at("max_answer_length");
        const Decoded decoded =
            decode({begin, end, bio, facts, type}, example, *tokenizer, options, config.global_seq_len);
        CHECK(decoded.answer.text == one.at("answer").get<std::string>());
        Json sp = Json::array();
        for (const SupportingFact& fact : decoded.supporting_facts) sp.push_back({fact.title, fact.sentence});
        CHECK(sp == one.at("sp"));
        CHECK(decoded.candidates == one.at("num_candidates").get<std::int64_t>());
        REQUIRE(decoded.answer.tokens.has_value() == !one.at("span").is_null());
        REQUIRE(decoded.answer.tokens.has_value() == !one.at("score").is_null());
        if (!decoded.answer.tokens) continue;
        CHECK(Json({decoded.answer.tokens->first, decoded.answer.tokens->last}) == one.at("span"));
        CHECK(decoded.answer.score == Approx(one.at("score").get<double>()).epsilon(1e-5));
      }
      file.require_all_read(name);
    }
    test::require_names(file, "", names);
    file.require_all_read("", {{"@unicode_version", "a description"}, {"@content", "a description"}});
  }
}

TEST_CASE("a prediction file is read back as it was written, and appears whole", "[tasks][hotpotqa]") {
  const test::TemporaryFolder folder;
  {
    PredictionFile file(folder / "p.json");
    file.add("a", "Ola \"D\"", {{"T", 0}, {"U\n", 3}});
    file.add("b", "", {});
    CHECK_THROWS_AS(file.add("a", "x", {}), Error);
    CHECK(!std::filesystem::exists(folder / "p.json"));
    file.finish();
  }
  const PredictionSet set = read_predictions(folder / "p.json");
  CHECK(set.answers == std::map<std::string, std::string>{{"a", "Ola \"D\""}, {"b", ""}});
  CHECK(set.supporting_facts.at("a") == std::vector<SupportingFact>{{"T", 0}, {"U\n", 3}});
  CHECK(set.supporting_facts.at("b").empty());
  {
    PredictionFile empty(folder / "e.json");
    empty.finish();
  }
  CHECK(read_predictions(folder / "e.json").answers.empty());
  { PredictionFile abandoned(folder / "half.json"); }
  CHECK(!std::filesystem::exists(folder / "half.json"));
}

TEST_CASE("the last global token does not speak for CLS where the globals end before their capacity",
          "[tasks][hotpotqa]") {
  ops::register_cpu_ops();
  const auto example = test::hotpotqa_example(test::worked_hotpotqa_record("yes"));
  const auto tokenizer = test::hotpotqa_tokenizer();
  const auto first = logits_of({{0, 1}});
  const std::vector<float> facts(11, 5), span = {1, 0, 0};
  DecodeOptions options;
  options.top_positions = 1;
  for (const std::int64_t capacity : {0, 32}) {
    CHECK(decode({first, first, {}, facts, span}, example.features, *tokenizer, options, capacity).candidates == 0);
  }
}

TEST_CASE("words that the text does not have give no text and no place", "[tasks][hotpotqa]") {
  ops::register_cpu_ops();
  auto tokenizer = std::shared_ptr<const data::Tokenizer>(test::hotpotqa_tokenizer());
  data::LoadedExample example = test::hotpotqa_example(test::worked_hotpotqa_record("z1"));
  EncoderInput input;
  input.long_offsets = {0, 14};
  input.global_offsets = {0, 11};
  std::vector<float> ends(28, 0);
  ends[2 * 12] = ends[2 * 13 + 1] = 20;  // begin at 12, end at 13: z0 z1
  HeadOutput logits(3);
  logits[kFactLogits] = Var(Tensor::from(std::vector<float>(11, 5), {11}, Purpose::activations));
  logits[kTypeLogits] = Var(Tensor::from({5, 0, 0}, {1, 3}, Purpose::activations));
  logits[kAnswerLogits] = Var(Tensor::from(ends, {14, 2}, Purpose::activations));
  const auto answer_of = [&](std::int64_t first, std::int64_t last) {
    auto& words = std::get<Numbers>(example.features.at("long_tokens_to_unigrams"));
    words[12] = first;
    words[13] = last;
    HotpotqaAnswer answer({}, tokenizer);
    answer.add(std::span(&example, 1), input, logits, {0, 1});
    return answer.finish();
  };
  CHECK(answer_of(0, 1).at("answer") == "z0 z1");
  CHECK(answer_of(0, 1).at("place") == Json({{"paragraph", 1}, {"sentence", 0}, {"start", 0}, {"end", 5}}));
  constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();
  for (const auto& [first, last] : {std::pair{kFar, kFar}, std::pair{std::int64_t{0}, kFar},
                                    std::pair{kFar, std::int64_t{-1}}, std::pair{std::int64_t{1}, std::int64_t{0}}}) {
    CAPTURE(first, last);
    CHECK(answer_of(first, last).at("place").is_null());
  }
  CHECK(answer_of(kFar, kFar).at("answer") == "");
  CHECK(answer_of(0, kFar).at("answer") == "z0 z1");
}

TEST_CASE("a probability equal to the threshold makes a supporting fact", "[tasks][hotpotqa]") {
  ops::register_cpu_ops();
  const auto example = test::hotpotqa_example(test::worked_hotpotqa_record("yes"));
  const auto tokenizer = test::hotpotqa_tokenizer();
  const std::vector<float> none(kTypes.size(), 0), facts(11, 0), yes = {0, 1, 0};  // facts: of probability 0.5
  const auto count = [&](double threshold) {
    DecodeOptions options;
    options.sf_threshold = threshold;
    return decode({none, none, {}, facts, yes}, example.features, *tokenizer, options, 0).supporting_facts.size();
  };
  CHECK(count(0.5) == 3);
  CHECK(count(0.51) == 0);
}
