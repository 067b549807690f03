// Beam search: against dense_reference.h5, group `beam_search`, by enumeration, and of real encoder-decoders.
#include "tasks/translation/decode/beam_search.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "tasks/translation/decode/model_tokens.h"
#include "tasks/translation/decode/translate.h"
#include "tests/core/nn/small_seq2seq.h"
#include "tests/golden/golden_group.h"
#include "tests/support/numbers.h"
#include "tests/support/worst.h"

namespace etc::translation {
namespace {

using test::GoldenFile;
using Rows = std::vector<std::vector<double>>;

// log p that depend on the previous token alone.
class Table final : public NextTokens {
 public:
  explicit Table(Rows log_p) : log_p_(std::move(log_p)) {}
  std::int64_t vocabulary() const override { return std::ssize(log_p_); }
  void step(std::span<const LiveHypothesis> hypotheses) override {
    rows_.clear();
    for (const LiveHypothesis& hypothesis : hypotheses) {
      rows_.push_back(&log_p_[static_cast<std::size_t>(hypothesis.token)]);
    }
  }
  std::vector<NextToken> best(std::int64_t hypothesis, std::int64_t k) const override {
    return best_of(*rows_[static_cast<std::size_t>(hypothesis)], k);
  }
  double log_p(std::int64_t hypothesis, std::int32_t token) const override {
    return rows_[static_cast<std::size_t>(hypothesis)]->at(static_cast<std::size_t>(token));
  }

 private:
  Rows log_p_;
  std::vector<const std::vector<double>*> rows_;  // of the hypotheses
};

// A row for each previous token, of probabilities that sum to 1.
Rows random_rows(std::int64_t vocabulary, std::uint64_t key) {
  Rows rows;
  const Tensor numbers = test::noise({vocabulary, vocabulary}, key);
  for (std::int64_t i = 0; i < vocabulary; ++i) {
    double sum = 0;
    std::vector<double>& row = rows.emplace_back();
    for (std::int64_t v = 0; v < vocabulary; ++v) {
      row.push_back(2.0 * numbers.data()[i * vocabulary + v]);
      sum += std::exp(row.back());
    }
    for (double& number : row) number -= std::log(sum);
  }
  return rows;
}

// Sentences of a few words.
std::vector<SearchSentence> some_sentences(std::size_t count) {
  return std::vector<SearchSentence>(count, {5, {}});
}

Rows rows_of(const GoldenFile& file) {
  const auto table = file.read<double>("beam_search/log_probs_given_previous");
  Rows rows;
  for (std::int64_t i = 0; i < table.shape.at(0); ++i) {
    rows.emplace_back(table.values.begin() + i * table.shape.at(1), table.values.begin() + (i + 1) * table.shape.at(1));
  }
  return rows;
}

struct GoldenCase {
  const GoldenFile& file;
  std::string group;

  SearchOptions options() const {
    const auto integer = [&](const char* name) { return file.int_attribute(group, name); };
    SearchOptions options;
    options.beam = integer("beam");
    options.length_penalty = file.real_attribute(group, "lenpen");
    options.max_len_b = integer("max_len");
    options.min_len = integer("min_len");
    const auto token = [&](const char* name) {
      return static_cast<std::int32_t>(file.int_attribute("beam_search", name));
    };
    options.tokens = {token("pad"), token("eos"), token("unk")};
    return options;
  }

  // Compares tokens exactly and scores to 1e-9, as in the file's README; `falsified` is a factor on the scores.
  bool agrees(const std::vector<Hypothesis>& got, double falsified) const {
    const auto tokens = file.read_ragged<std::int64_t>(group + "/tokens");
    const auto positional = file.read_ragged<double>(group + "/positional_scores");
    const auto scores = file.read<double>(group + "/scores").values;
    for (const std::size_t rows : {tokens.size(), positional.size(), scores.size()}) {
      if (rows != got.size()) return false;
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!std::equal(tokens[i].begin(), tokens[i].end(), got[i].tokens.begin(), got[i].tokens.end())) return false;
      if (positional[i].size() != got[i].token_scores.size()) return false;
      if (!(std::abs(got[i].score - scores[i] * falsified) < 1e-9)) return false;
      for (std::size_t t = 0; t < positional[i].size(); ++t) {
        if (!(std::abs(got[i].token_scores.at(t) - positional[i][t] * falsified) < 1e-9)) return false;
      }
    }
    return true;
  }
};

TEST_CASE("beam search finds the tokens and scores of the published rules", "[golden]") {
  test::for_each_file_with("beam_search/log_probs_given_previous", [](const GoldenFile& file) {
    Table model(rows_of(file));
    int cases = 0, changed = 0;
    for (const std::string& name : file.groups("beam_search")) {
      CAPTURE(name);
      const GoldenCase golden{file, "beam_search/" + name};
      const std::vector<SearchSentence> sentences{{5, {}}, {9, {}}};
      const auto found = beam_search(model, sentences, golden.options());
      CHECK(golden.agrees(found.at(0), 1));
      CHECK(golden.agrees(found.at(1), 1));
      CHECK_FALSE(golden.agrees(found.at(0), 1.0001));
      SearchOptions other = golden.options();
      other.tokens.pad = 0;  // another token that never occurs
      changed += golden.agrees(beam_search(model, sentences, other).at(0), 1) ? 0 : 1;
      ++cases;
    }
    CHECK(changed > 0);
    CHECK(cases > 0);
    file.require_all_read("beam_search", {{"beam_search@note", "a text"}});
    std::printf("beam_search: %d cases, tokens exact, scores within 1e-9\n", cases);
  });
}

TEST_CASE("a beam as wide as all prefixes finds the best of all translations", "[decode]") {
  for (const std::uint64_t key : {1, 2, 3, 4, 5}) {
    const std::int64_t vocabulary = 6, longest = 3;
    const Rows rows = random_rows(vocabulary, key);
    // Every translation of at most three tokens and </s>, which is 2; padding is 1.
    double best = -HUGE_VAL;
    std::vector<std::int32_t> tokens, best_tokens;
    const std::function<void(std::int32_t, double)> go_on = [&](std::int32_t previous, double sum) {
      const std::vector<double>& row = rows[static_cast<std::size_t>(previous)];
      if (!tokens.empty() && sum + row[2] > best) {
        best = sum + row[2];
        best_tokens = tokens;
        best_tokens.push_back(2);
      }
      if (std::ssize(tokens) == longest) return;
      for (std::int32_t v = 0; v < vocabulary; ++v) {
        if (v == 1 || v == 2) continue;
        tokens.push_back(v);
        go_on(v, sum + row[static_cast<std::size_t>(v)]);
        tokens.pop_back();
      }
    };
    go_on(2, 0);
    // The beam must be smaller than the vocabulary, but with V tokens, of which V - 2 continue a prefix, it needs
    // (V - 2)^2 or more places; so the vocabulary is widened by tokens that never occur.
    Rows wide = rows;
    for (auto& row : wide) row.resize(200, -HUGE_VAL);
    wide.resize(200, std::vector<double>(200, -1000));
    Table model(wide);
    SearchOptions options;
    options.beam = 150;
    options.length_penalty = 0;
    options.max_len_b = longest;
    const Hypothesis found = beam_search(model, some_sentences(1), options).at(0).at(0);
    CHECK(found.tokens == best_tokens);
    CHECK(found.score == Approx(best).epsilon(1e-12));
  }
}

TEST_CASE("of equally probable hypotheses those of the earlier one go on", "[decode]") {
  // Tokens 4 and 5 are equally probable, and so are then 6 and 7 after 4, and 4 and 5 after 5: four equal sums for two
  // places.
  Rows rows(8, std::vector<double>(8, -1000));
  rows[2][4] = rows[2][5] = std::log(0.5);
  rows[4][6] = rows[4][7] = rows[5][4] = rows[5][5] = std::log(0.5);
  rows[6][2] = rows[7][2] = 0;
  Table model(rows);
  SearchOptions options;
  options.beam = 2;
  options.max_len_b = 4;
  const auto found = beam_search(model, some_sentences(1), options).at(0);
  REQUIRE(found.size() == 2);
  CHECK(found[0].tokens == std::vector<std::int32_t>{4, 6, 2});
  CHECK(found[1].tokens == std::vector<std::int32_t>{4, 7, 2});
}

TEST_CASE("a beam of one takes the best token each time, and the specification's lengths decide by their penalty",
          "[decode]") {
  const Rows rows = random_rows(9, 7);
  Table model(rows);
  SearchOptions options;
  options.beam = 1;
  options.max_len_b = 12;
  const Hypothesis found = beam_search(model, some_sentences(1), options).at(0).at(0);
  std::int32_t previous = 2;
  for (std::size_t s = 0; s < found.tokens.size(); ++s) {
    std::vector<double> row = rows[static_cast<std::size_t>(previous)];
    row[1] = -HUGE_VAL;
    if (s < 1) row[2] = -HUGE_VAL;
    if (s < 12)
      previous = static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
    else
      previous = 2;
    CHECK(found.tokens[s] == previous);
  }
  CHECK(found.tokens.back() == 2);
  // Two chains with a sum of -6.2 over 5 tokens and of -7.9 over 8; every token but the first has a log p of 0.
  Rows chains(20, std::vector<double>(20, -HUGE_VAL));
  chains[2][4] = -6.2;
  chains[2][10] = -7.9;
  for (std::size_t t = 4; t < 7; ++t) chains[t][t + 1] = 0;
  for (std::size_t t = 10; t < 16; ++t) chains[t][t + 1] = 0;
  chains[7][2] = chains[16][2] = 0;
  Table two(chains);
  options.beam = 2;
  for (const auto& [penalty, first, second] :
       {std::tuple(0.0, -6.2, -7.9), {0.6, -2.268679, -2.360531}, {1.0, -0.9875, -1.24}}) {
    options.length_penalty = penalty;
    const auto both = beam_search(two, some_sentences(1), options).at(0);
    REQUIRE(both.size() == 2);
    CHECK(both[0].score == Approx(first).epsilon(1e-6));
    CHECK(both[1].score == Approx(second).epsilon(1e-6));
    CHECK(both[0].tokens.size() == (penalty == 0 ? 5 : 8));
  }
}

TEST_CASE("a prefix is forced, counted, and searched on from; limits end a search", "[decode]") {
  Table model(random_rows(9, 11));
  SearchOptions options;
  options.beam = 3;
  options.max_len_b = 6;
  const std::vector<SearchSentence> sentences{{4, {7, 5}}, {4, {}}, {4, {8}}};
  const auto found = beam_search(model, sentences, options);
  for (const Hypothesis& hypothesis : found[0]) {
    CHECK(std::vector(hypothesis.tokens.begin(), hypothesis.tokens.begin() + 2) == sentences[0].prefix);
    double sum = 0;
    for (const double score : hypothesis.token_scores) sum += score;
    CHECK(hypothesis.score == Approx(sum / std::pow(hypothesis.tokens.size(), 0.6)).epsilon(1e-12));
    CHECK(hypothesis.tokens.size() <= 7);
    CHECK(hypothesis.tokens.back() == 2);
  }
  CHECK(found[2].front().tokens.front() == 8);
  // A sentence searched alone gives the same as beside others that end earlier.
  const auto alone = beam_search(model, std::span(sentences).subspan(1, 1), options);
  REQUIRE(alone[0].size() == found[1].size());
  for (std::size_t i = 0; i < alone[0].size(); ++i) {
    CHECK(alone[0][i].tokens == found[1][i].tokens);
    CHECK(alone[0][i].score == found[1][i].score);
  }
  options.max_len_a = 1;
  options.max_len_b = 0;
  const auto short_ones = beam_search(model, std::vector<SearchSentence>{{2, {}}}, options);
  for (const Hypothesis& hypothesis : short_ones[0]) CHECK(hypothesis.tokens.size() <= 3);
  CHECK_THROWS_WITH(beam_search(model, std::vector<SearchSentence>{{2, {5, 6, 7}}}, options),
                    "beam search: a prefix: expected at most 2 tokens, got 3");
  CHECK_THROWS_WITH(beam_search(model, std::vector<SearchSentence>{{9, {1}}}, options),
                    "beam search: a prefix: expected tokens below 9 other than padding and </s>, got 1");
  options.beam = 0;
  CHECK_THROWS_AS(beam_search(model, sentences, options), UsageError);
  options.beam = 12;  // reduced to 8
  CHECK(beam_search(model, some_sentences(1), options).at(0).size() <= 8);
}

TEST_CASE("whoever is called before each step may end the search", "[decode]") {
  Table model(random_rows(9, 11));
  SearchOptions options;
  options.min_len = 20;
  std::int64_t steps = 0;
  options.before_step = [&] {
    if (++steps == 3) throw Interrupted("told to stop");
  };
  CHECK_THROWS_WITH(beam_search(model, some_sentences(2), options), "told to stop");
  CHECK(steps == 3);
}

TEST_CASE("nan among log-probabilities names sentence and step, and an unknown token costs its penalty", "[decode]") {
  Rows rows = random_rows(9, 13);
  const auto unknowns = [](const std::vector<Hypothesis>& hypotheses) {
    std::ptrdiff_t count = 0;
    for (const auto& one : hypotheses) count += std::count(one.tokens.begin(), one.tokens.end(), 3);
    return count;
  };
  for (auto& row : rows) row[3] = -0.5;
  Table liked(rows);
  SearchOptions options;
  options.max_len_b = 5;
  CHECK(unknowns(beam_search(liked, some_sentences(1), options)[0]) > 0);
  options.unknown_penalty = 50;
  CHECK(unknowns(beam_search(liked, some_sentences(1), options)[0]) == 0);
  rows[3][5] = NAN;
  rows[2][3] = 0;
  Table bad(rows);
  options.unknown_penalty = 0;
  CHECK_THROWS_WITH(beam_search(bad, some_sentences(2), options),
                    "beam search: sentence 0, step 1: the model's log-probabilities have nan (token 5)");
  std::vector<SearchSentence> named = some_sentences(2);
  named[0].name = "line 12";
  CHECK_THROWS_WITH(beam_search(bad, named, options),
                    "beam search: line 12, step 1: the model's log-probabilities have nan (token 5)");
}

TEST_CASE("a source without words has no hypothesis, whatever stands beside it", "[decode]") {
  Table model(random_rows(9, 11));
  const std::vector<SearchSentence> sentences{{1, {}}, {4, {}}, {1, {}}, {0, {}}};
  const auto found = beam_search(model, sentences, SearchOptions());
  for (const std::size_t empty : {0, 2, 3}) CHECK(found[empty].empty());
  const auto alone = beam_search(model, std::span(sentences).subspan(1, 1), SearchOptions());
  REQUIRE(found[1].size() == alone[0].size());
  CHECK(found[1][0].tokens == alone[0][0].tokens);
  CHECK(beam_search(model, std::span(sentences).first(1), SearchOptions()).at(0).empty());
}

TEST_CASE("nan in a search of many sentences names the one that has it, not its place among those of its length",
          "[decode]") {
  test::SmallSeq2Seq model(test::small_seq2seq());
  const Parameter* const table = model.decoder.output().table;
  for (std::int64_t i = 0; i < table->value.cols(); ++i) table->value.data()[9 * table->value.cols() + i] = NAN;
  // All have nan in the first step; the shortest is the first of their batch.
  std::vector<TranslationSource> sources(3);
  sources[0].ids = {5, 6, 4, 7, 2};
  sources[1].ids = {5, 6, 2};
  sources[2].ids = {5, 2};
  const std::vector<TranslationModel> models{{model.encoder, model.decoder}};
  CHECK_THROWS_WITH(translate(models, sources, {}), Catch::StartsWith("beam search: sentence 2, step 0: "));
  sources[2].name = "line 3";
  CHECK_THROWS_WITH(translate(models, sources, {}), Catch::StartsWith("beam search: line 3, step 0: "));
}

// Encoded sources for a search of the model.
EncodedSources encoded(test::SmallSeq2Seq& model, const test::Pairs& pairs) {
  Tape tape(Recording::off);
  return {model.decoder, model.encoder.forward(tape, pairs.source, {}).long_states.value(), pairs.source.long_offsets};
}

// The log-probability of each token of a translation, from one pass over all of it.
std::vector<double> teacher_forced(test::SmallSeq2Seq& model, const EncodedSources& sources, std::size_t sentence,
                                   const std::vector<std::int32_t>& tokens) {
  const std::int64_t first = sources.source_offsets[sentence], end = sources.source_offsets[sentence + 1], H = 8;
  const float* const states = sources.encoder_states.data();
  const std::vector<std::int64_t> offsets{0, end - first};
  DecoderInput input{offsets};
  input.target_ids = {2};
  input.target_ids.insert(input.target_ids.end(), tokens.begin(), tokens.end() - 1);
  input.target_offsets = {0, std::ssize(tokens)};
  Tape tape(Recording::off);
  const Var memory(Tensor::from({states + first * H, states + end * H}, {end - first, H}, Purpose::activations));
  const Var decoded = model.decoder.forward(tape, memory, input, {});
  const Tensor logits = vocabulary_logits(decoded.value(), model.decoder.packed_output());
  std::vector<double> log_p;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const float* const row = logits.data() + static_cast<std::int64_t>(t) * logits.cols();
    double sum = 0;
    for (std::int64_t v = 0; v < logits.cols(); ++v) sum += std::exp(static_cast<double>(row[v]));
    log_p.push_back(static_cast<double>(row[tokens[t]]) - std::log(sum));
  }
  return log_p;
}

TEST_CASE("scores of a model's search are its log-probabilities of the whole translation, in every number type",
          "[decode]") {
  using Norm = Seq2SeqConfig::Norm;
  double worst = 0;
  std::vector<double> best;  // scores
  for (const auto& [norm, compute] : {std::pair(Norm::post_ln, ComputeType::fp32),
                                      {Norm::pre_ln, ComputeType::fp32},
                                      {Norm::admin, ComputeType::fp32},
                                      {Norm::admin, ComputeType::int8},
                                      {Norm::admin, ComputeType::bf16}}) {
    if (!cpu_offers(compute)) continue;
    Seq2SeqConfig config = test::small_seq2seq();
    config.norm = norm;
    test::SmallSeq2Seq model(config);
    model.encoder.release_kernels(compute);
    model.decoder.release_kernels(compute);
    const test::Pairs pairs({{6, 1}, {1, 1}, {19, 1}});
    const EncodedSources sources = encoded(model, pairs);
    ModelTokens tokens({sources});
    SearchOptions options;
    options.max_len_b = 20;
    const auto found = beam_search(tokens, some_sentences(3), options);
    for (std::size_t b = 0; b < found.size(); ++b) {
      REQUIRE(found[b].size() == 4);
      for (const Hypothesis& hypothesis : found[b]) {
        const std::vector<double> expected = teacher_forced(model, sources, b, hypothesis.tokens);
        double sum = 0;
        for (std::size_t t = 0; t < expected.size(); ++t) {
          test::keep_worst(worst, std::abs(expected[t] - hypothesis.token_scores[t]));
          sum += expected[t];
        }
        CHECK(hypothesis.score == Approx(sum / std::pow(expected.size(), 0.6)).margin(1e-5));
      }
    }
    best.push_back(found[0][0].score);
  }
  for (std::size_t i = 3; i < best.size(); ++i) CHECK(best[i] != best[2]);  // int8 and bf16 differ
  CHECK(worst < 5e-6);                                                      // of logits in fp32
  std::printf("beam search: log-probabilities differ by %.1e from those of one pass\n", worst);
}

TEST_CASE("a sentence's translations are the same whichever sentences it is translated with", "[decode]") {
  Seq2SeqConfig config = test::small_seq2seq();
  test::SmallSeq2Seq first(config);
  config.norm = Seq2SeqConfig::Norm::pre_ln;
  test::SmallSeq2Seq second(config);
  std::vector<TranslationSource> sources;
  for (const std::int64_t length : {9, 1, 30, 0, 4, 9, 17, 2}) {
    TranslationSource& source = sources.emplace_back();
    for (std::int64_t i = 0; i + 1 < length; ++i) source.ids.push_back(test::Pairs::id(3 * i + std::ssize(sources)));
    if (length > 0) source.ids.push_back(2);
  }
  sources[4].prefix = {7, 5};
  TranslateOptions options;
  options.search.max_len_b = 12;
  const std::vector<TranslationModel> one{{first.encoder, first.decoder}},
      both{{first.encoder, first.decoder}, {second.encoder, second.decoder}};
  for (const auto& models : {one, both}) {
    options.batch_tokens = 4096;
    const auto together = translate(models, sources, options);
    options.batch_tokens = 20;
    const auto apart = translate(models, sources, options);
    REQUIRE(together.size() == sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      CAPTURE(i);
      REQUIRE(together[i].size() == (sources[i].ids.size() <= 1 ? 0 : 4));
      const auto alone = translate(models, std::span(sources).subspan(i, 1), options).at(0);
      for (std::size_t n = 0; n < together[i].size(); ++n) {
        for (const auto* other : {&apart[i], &alone}) {
          CHECK((*other)[n].tokens == together[i][n].tokens);
          CHECK((*other)[n].token_scores == together[i][n].token_scores);
        }
      }
    }
    for (const Hypothesis& hypothesis : together[4]) CHECK(hypothesis.tokens[1] == 5);
  }
  CHECK(translate(one, sources, options)[0][0].score != translate(both, sources, options)[0][0].score);
  options.search.limit = 29;
  CHECK_THROWS_WITH(translate(one, sources, options), "translate: sentence 2: expected at most 29 tokens, got 30");
}

TEST_CASE("an ensemble says the mean of its models' probabilities", "[decode]") {
  Seq2SeqConfig config = test::small_seq2seq();
  test::SmallSeq2Seq first(config);
  config.norm = Seq2SeqConfig::Norm::pre_ln;
  test::SmallSeq2Seq second(config);
  const test::Pairs pairs({{6, 1}, {3, 1}});
  const EncodedSources of_first = encoded(first, pairs), of_second = encoded(second, pairs);
  const std::vector<LiveHypothesis> start{{0, -1, 2}, {1, -1, 2}};
  const auto probabilities = [&](const std::vector<EncodedSources>& models) {
    ModelTokens tokens(models);
    std::vector<double> all;
    tokens.step(start);
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int32_t v = 0; v < 13; ++v) all.push_back(std::exp(tokens.log_p(i, v)));
      // The best tokens are those of the full list of log-probabilities, however many are asked for.
      const std::vector<NextToken> expected = best_of(std::span(all).last(13), 13);
      for (const std::int64_t k : {1, 5, 13}) {
        const std::vector<NextToken> best = tokens.best(i, k);
        REQUIRE(std::ssize(best) == k);
        for (std::size_t j = 0; j < best.size(); ++j) {
          CHECK(best[j].token == expected[j].token);
          CHECK(std::exp(best[j].log_p) == expected[j].log_p);
        }
      }
    }
    return all;
  };
  const auto a = probabilities({of_first}), b = probabilities({of_second}), both = probabilities({of_first, of_second});
  for (std::size_t i = 0; i < both.size(); ++i) CHECK(both[i] == Approx((a[i] + b[i]) / 2).epsilon(1e-12));
  CHECK_THROWS_WITH(ModelTokens({}), "translation: expected at least one model");
  config.vocab_size = 14;
  test::SmallSeq2Seq other(config);
  const EncodedSources of_other = encoded(other, pairs);
  CHECK_THROWS_WITH(ModelTokens({of_first, of_other}),
                    "translation: models of one ensemble: expected 13 target tokens, got 14");
}

}  // namespace
}  // namespace etc::translation
