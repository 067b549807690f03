// Decoding against the predictions of the published decoder and the worked examples.
#include "tasks/nq/decode.h"

#include <algorithm>
#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/ops/register.h"
#include "tasks/nq/prediction_file.h"
#include "tasks/nq/top_logits.h"
#include "tasks/text/top_scores.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"

using namespace etc;
using namespace etc::nq;

namespace {

using Numbers = std::vector<std::int64_t>;

// "joint|answer_type=1|max_short=32"
DecodeOptions options_of(const std::string& key) {
  const std::string method = key.substr(0, key.find('|'));
  DecodeOptions options;
  options.selection = method == "joint"      ? SpanSelection::joint
                      : method == "disjoint" ? SpanSelection::disjoint
                                             : SpanSelection::joint_exhaustive;
  options.consider_answer_type = key.find("answer_type=1") != std::string::npos;
  options.max_short_answer_len = std::stoll(key.substr(key.rfind('=') + 1));
  return options;
}

// Passes a window with logits [L, 4] to the decoder.
void add(DocumentDecoder& decoder, const Numbers& token_pos, const std::vector<float>& logits, const float* types) {
  ops::register_cpu_ops();
  const std::int64_t length = std::ssize(token_pos);
  const TopLogits top(Var(Tensor::from(logits, {length, 4}, Purpose::activations)), {0, length});
  WindowLogits window = top.window(0);
  window.token_pos = token_pos;
  window.type_logits = types;
  decoder.add(window);
}

// Decoders in order of their documents' first appearance.
class Documents {
 public:
  explicit Documents(const DecodeOptions& options) : options_(options) {}
  DocumentDecoder& of(std::int64_t id) {
    const auto [place, fresh] = index_.try_emplace(id, decoders_.size());
    if (fresh) decoders_.emplace_back(id, options_);
    return decoders_[place->second];
  }
  const std::vector<DocumentDecoder>& decoders() const { return decoders_; }

 private:
  DecodeOptions options_;
  std::map<std::int64_t, std::size_t> index_;
  std::vector<DocumentDecoder> decoders_;
};

// A window in which each column has logits at a few tokens. The decoder takes one list of tokens for all four columns,
// so a column gets very low logits at the tokens of the other columns; 60 positions without a token have larger ones
// and fill the rest of the column's 50 largest.
struct SparseWindow {
  struct Column {
    std::vector<std::pair<float, std::int64_t>> entries;  // logit, token
    float zero = 1;                                       // logit of position 0
  };
  Numbers token_pos{-1};
  std::vector<float> logits;  // [L, 4]
  std::vector<float> types = {0, 0, 0, 0, 1};

  explicit SparseWindow(const std::array<Column, 4>& columns) {
    for (const Column& column : columns) logits.push_back(column.zero);
    for (std::size_t c = 0; c < 4; ++c) {
      for (const auto& [logit, token] : columns[c].entries) {
        token_pos.push_back(token);
        logits.insert(logits.end(), 4, -1e6f);
        logits[logits.size() - 4 + c] = logit;
      }
    }
    token_pos.resize(token_pos.size() + 60, -1);
    logits.resize(token_pos.size() * 4, -5);
  }

  void give(DocumentDecoder& decoder) const { add(decoder, token_pos, logits, types.data()); }
};

using Column = SparseWindow::Column;
const Column kShortStarts{{{9, 11}, {6, 14}}, 2};
const Column kShortEnds{{{8, 14}, {7, 11}}, 2};
const Column kLongStarts{{{8, 9}, {4, 3}}, 4};
const Column kLongEnds{{{6, 8}, {5, 16}}, 2};

Prediction decoded(const std::array<Column, 4>& columns, SpanSelection selection = SpanSelection::joint) {
  DecodeOptions options;
  options.selection = selection;
  DocumentDecoder decoder(7, options);
  SparseWindow(columns).give(decoder);
  return decoder.decode().prediction;
}

// start, end of the short and of the long span
Numbers tokens(const Prediction& p) {
  REQUIRE(p.short_answers.size() == 1);
  return {p.short_answers[0].start_token, p.short_answers[0].end_token, p.long_answer.start_token,
          p.long_answer.end_token};
}

constexpr std::int64_t kTop = 50;  // logits that the reference takes per window and column

// One golden decode: the logits of some windows of a configuration, in reading order.
class GoldenDecode {
 public:
  GoldenDecode(const test::GoldenFile& file, const test::GoldenFile& features, const std::string& name)
      : rows_(file.read<std::int64_t>(name + "/window_row").values),
        logits_(file.read<float>(name + "/logits")),
        types_(file.read<float>(name + "/answer_type_logits").values),
        top_index_(file.read<std::int64_t>(name + "/topk_index").values),
        top_value_(file.read<float>(name + "/topk_value").values) {
    const std::string config = file.string_attribute(name, "config");
    const auto token_pos = features.read_ragged<std::int64_t>(config + "/token_pos");
    const auto ids = features.read_ragged<std::int64_t>(config + "/unique_ids");
    for (const std::int64_t row : rows_) {
      token_pos_.push_back(token_pos.at(static_cast<std::size_t>(row)));
      ids_.push_back(ids.at(static_cast<std::size_t>(row)).at(0));
    }
    const std::int64_t L = logits_.shape.at(2);
    REQUIRE(logits_.shape == Numbers{std::ssize(rows_), 4, L});
    windows_.assign(rows_.size(), std::vector<float>(static_cast<std::size_t>(4 * L)));
    for (std::int64_t i = 0; i < std::ssize(logits_.values); ++i) {
      windows_[static_cast<std::size_t>(i / (4 * L))][static_cast<std::size_t>(i % L * 4 + i / L % 4)] =
          logits_.values[static_cast<std::size_t>(i)];
    }
  }

  void require_top_logits() const {
    const std::int64_t L = logits_.shape[2], columns = std::ssize(rows_) * 4;
    REQUIRE(std::ssize(top_index_) == columns * kTop);
    REQUIRE(std::ssize(top_value_) == columns * kTop);
    for (std::int64_t column = 0; column < columns; ++column) {
      const float* logits = logits_.values.data() + column * L;
      const auto order = text::largest({logits, static_cast<std::size_t>(L)}, kTop);
      REQUIRE(std::equal(order.begin(), order.end(), top_index_.begin() + column * kTop));
      std::vector<float> values;
      for (const auto position : order) values.push_back(logits[position]);
      REQUIRE(std::equal(values.begin(), values.end(), top_value_.begin() + column * kTop));
    }
  }

  // Requires the predictions of all documents; returns how many were equal and on how many the reference stops.
  std::pair<std::size_t, std::size_t> compare(const DecodeOptions& options, const Json& predictions) const {
    Documents documents(options);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      add(documents.of(ids_[i]), token_pos_[i], windows_[i], types_.data() + i * kAnswerTypes);
    }
    REQUIRE(predictions.size() == documents.decoders().size());
    std::size_t stops = 0;
    for (std::size_t d = 0; d < predictions.size(); ++d) {
      const DecodedDocument document = documents.decoders()[d].decode();
      const Json ours = Json::parse(prediction_line(document));
      if (document.found) {
        REQUIRE(ours == predictions[d]);
      } else {
        ++stops;
        REQUIRE(predictions[d] == Json{{"error", "empty list"}, {"example_id", ours.at("example_id")}});
      }
    }
    return {predictions.size() - stops, stops};
  }

 private:
  std::vector<std::int64_t> rows_;
  test::GoldenArray<float> logits_;  // [n, 4, L]
  std::vector<float> types_;
  std::vector<std::int64_t> top_index_;  // [n, 4, kTop]
  std::vector<float> top_value_;
  std::vector<Numbers> token_pos_;
  Numbers ids_;
  std::vector<std::vector<float>> windows_;  // [n][L · 4]
};

}  // namespace

TEST_CASE("decoded predictions equal the published decoder's, in every setting", "[tasks][nq][golden]") {
  ops::register_cpu_ops();
  const auto files = test::golden_named("nq_decode", ".h5");
  if (files.empty()) return test::skip("no golden Natural Questions decodes");
  for (const auto& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path), features(test::golden_beside(path, "nq_decode", "nq_features.h5"));
    CHECK(file.string_attribute("", "task") == "nq");
    CHECK(file.int_attribute("", "top_k") == kTop);
    test::require_groups(file, "",
                         {"d256_outside", "d4096_positive", "d512_interleaved", "d512_peaks", "d512_positive",
                          "d512_signed", "d512_ties", "head", "loss"});
    for (const std::string& name : file.groups()) {
      if (name == "loss" || name == "head") continue;
      CAPTURE(name);
      const GoldenDecode golden(file, features, name);
      golden.require_top_logits();
      const Json predictions = Json::parse(file.read_strings(name + "/predictions_json").at(0));
      REQUIRE(predictions.size() > 0);
      std::size_t documents = 0, stops = 0;
      for (const auto& [key, expected] : predictions.items()) {
        CAPTURE(key);
        REQUIRE(expected.size() == 1);
        const auto [compared, without] = golden.compare(options_of(key), expected.at("predictions"));
        documents += compared;
        stops += without;
      }
      std::printf("%s %s: %zu settings, %zu documents equal, %zu without a list to choose from\n",
                  path.filename().c_str(), name.c_str(), predictions.size(), documents, stops);
    }
    file.require_all_read("", {{"loss*", "compared by the test of losses"},
                               {"head*", "compared by the test of the head"},
                               {"*@kind", "describes the logits"},
                               {"*@note", "describes the entries"}});
  }
}

TEST_CASE("the worked decodes", "[tasks][nq]") {
  Prediction p = decoded({kShortStarts, kShortEnds, kLongStarts, kLongEnds});
  CHECK(tokens(p) == Numbers{11, 15, 9, 17});
  CHECK(p.short_score == 8.5);
  CHECK(p.long_score == 4.5);
  p = decoded({kShortStarts, kShortEnds, kLongStarts, kLongEnds}, SpanSelection::disjoint);
  CHECK(tokens(p) == Numbers{11, 15, 8, 10});
  CHECK(p.long_score == 5.0);
  p = decoded({kShortStarts, kShortEnds, kLongStarts, kLongEnds}, SpanSelection::joint_exhaustive);
  CHECK(tokens(p) == Numbers{11, 15, 9, 17});
  CHECK((p.short_score == 8.5 && p.long_score == 4.5));
  // A negative logit at position 0 reverses the order.
  p = decoded({Column{{{9, 11}, {6, 14}, {-1, 12}}, -2}, kShortEnds, kLongStarts, kLongEnds});
  CHECK(tokens(p) == Numbers{12, 15, 9, 17});
  CHECK(p.short_score == 4.5);
  // No long end lies after the start: the best end is taken, and both are put in ascending order.
  p = decoded({kShortStarts, kShortEnds, kLongStarts, Column{{{3, 4}, {2, 8}}, 1}});
  CHECK(tokens(p) == Numbers{11, 15, 4, 10});
  CHECK(p.long_score == 5.0);
  // Short ends farther than 31 tokens do not count.
  p = decoded({Column{{{2, 10}}, 1}, Column{{{5, 50}, {4, 41}, {6, 9}}, 1}, kLongStarts, kLongEnds});
  CHECK(tokens(p) == Numbers{10, 42, 9, 17});
  CHECK(p.short_score == 6.0);
  // Of equal starts the later token is taken, of equal ends the one listed first.
  p = decoded({Column{{{2, 10}, {2, 12}}, 1}, Column{{{1, 13}, {1, 15}}, 1}, kLongStarts, kLongEnds});
  CHECK(tokens(p) == Numbers{12, 14, 9, 17});
  CHECK(p.short_score == 3.0);
}

TEST_CASE("a document without text gets the empty decode", "[tasks][nq]") {
  const Numbers token_pos(6, -1);
  const std::vector<float> logits(24, 1), types = {0, 0, 0, 1, 0};
  for (const SpanSelection selection :
       {SpanSelection::joint, SpanSelection::disjoint, SpanSelection::joint_exhaustive}) {
    DecodeOptions options;
    options.selection = selection;
    DocumentDecoder decoder(3, options);
    add(decoder, token_pos, logits, types.data());
    const DecodedDocument document = decoder.decode();
    CHECK(document.found == (selection == SpanSelection::joint));
    if (document.found) CHECK(tokens(document.prediction) == Numbers{0, 1, 0, 1});
    const Json file = {{"predictions", {Json::parse(prediction_line(document))}}};
    const auto read = parse_predictions({file, "p.json"});
    CHECK(read.at(3).long_answer.null() == !document.found);
  }
}

TEST_CASE("answer types, windows and n-best lists", "[tasks][nq]") {
  DecodeOptions options;
  options.n_best = 3;
  const auto run = [&](std::size_t first_type, std::size_t second_type) {
    DocumentDecoder decoder(7, options);
    for (const auto& [type, factor] : {std::pair(first_type, 2.0f), std::pair(second_type, 1.0f)}) {
      Column longs = kLongStarts;
      for (auto& [logit, token] : longs.entries) logit *= factor;
      SparseWindow window({kShortStarts, kShortEnds, longs, kLongEnds});
      window.types.assign(5, 0);
      window.types[type] = 1;
      window.give(decoder);
    }
    return decoder.decode();
  };
  CHECK(run(4, 1).prediction.yes_no == YesNo::yes);  // the last window's type
  CHECK(run(4, 1).prediction.short_answers.empty());
  CHECK(run(4, 2).prediction.yes_no == YesNo::no);
  CHECK(run(4, 3).long_type);
  CHECK(run(4, 3).prediction.short_answers.size() == 1);
  options.type_window = TypeWindow::best_long;
  CHECK(run(2, 1).prediction.yes_no == YesNo::no);
  options.consider_answer_type = false;
  CHECK(run(2, 1).prediction.yes_no == YesNo::none);

  const DecodedDocument document = run(4, 4);
  REQUIRE(document.long_best.size() == 3);
  CHECK(document.long_best[0].start == 9);
  CHECK(document.long_best[0].end == 17);
  CHECK(document.long_best[0].score == 6.5);
  for (std::size_t i = 1; i < 3; ++i) CHECK(document.long_best[i].score <= document.long_best[i - 1].score);
  const Json lists = n_best_of(document);
  CHECK(lists["long"][0] == Json{{"start_token", 9}, {"end_token", 17}, {"score", 6.5}});
  CHECK(lists["short"].size() == 3);
  CHECK_FALSE(Json::parse(prediction_line(document)).contains("n_best"));
}

TEST_CASE("a score that is not finite is a fault naming document and window, a logit an error", "[tasks][nq]") {
  const Numbers token_pos = {-1, 5};
  std::vector<float> logits = {0, 1, 1, 1, 2, 2, 2, 2};
  const std::vector<float> types(5, 0);
  const auto message = [&](ScoreKind kind) -> std::string {
    DecodeOptions options;
    options.score = kind;
    DocumentDecoder decoder(-12, options);
    try {
      add(decoder, token_pos, logits, types.data());
    } catch (const Error& error) {
      return error.what();
    }
    const DecodedDocument document = decoder.decode();
    CHECK(document.found == document.fault.empty());
    if (!document.found) {
      CHECK(document.prediction.example_id == -12);
      CHECK(document.prediction.long_answer.null());
      CHECK(document.prediction.long_score == 0);
    }
    return document.fault;
  };
  CHECK_THAT(message(ScoreKind::quotient), Catch::StartsWith("score_not_finite: document -12, window 0"));
  CHECK(message(ScoreKind::difference).empty());
  logits[4] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(message(ScoreKind::difference), Catch::Contains("a logit is nan"));
}

TEST_CASE("of windows with equal long answers the first one's answer type counts", "[tasks][nq]") {
  DecodeOptions options;
  options.type_window = TypeWindow::best_long;
  options.consider_answer_type = true;
  DocumentDecoder decoder(7, options);
  SparseWindow window({kShortStarts, kShortEnds, kLongStarts, kLongEnds});
  window.types = {0, 5, 0, 0, 1};  // yes
  window.give(decoder);
  window.types = {0, 0, 5, 0, 1};  // no
  window.give(decoder);
  CHECK(decoder.decode().prediction.yes_no == YesNo::yes);
}

TEST_CASE("short answers of an n-best list have at most the longest answer's tokens", "[tasks][nq]") {
  DecodeOptions options;
  options.max_short_answer_len = 3;
  options.n_best = 10;
  DocumentDecoder decoder(7, options);
  SparseWindow({Column{{{9, 11}}, 2}, Column{{{8, 13}, {7, 14}}, 2}, kLongStarts, kLongEnds}).give(decoder);
  const auto spans = decoder.decode().short_best;
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].start == 11);
  CHECK(spans[0].end == 14);  // behind the last of three tokens; 11 to 14 would be four
}
