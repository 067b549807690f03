// BLEU without golden files: what must hold of any corpus, and of the paired bootstrap.
#include "tasks/translation/bleu.h"

#include <algorithm>

#include "etc_core/base/parallel.h"
#include "etc_core/base/random.h"
#include "tasks/translation/bootstrap.h"
#include "tests/support/catch.h"

namespace etc::test {
namespace {

using namespace etc::translation;
using Lines = std::vector<std::string>;

// Sentences of a few words, in which about `noise` tenths of the words differ from those with `noise` 0.
Lines sentences(std::int64_t count, std::uint64_t noise, std::uint64_t seed) {
  Lines lines;
  for (std::int64_t i = 0; i < count; ++i) {
    std::string line;
    for (std::uint32_t w = 0; w < 12; ++w) {
      const Philox4 dice = philox({w, static_cast<std::uint32_t>(i), 0, 0}, 7);
      const Philox4 other = philox({w, static_cast<std::uint32_t>(i), 1, 0}, seed);
      line += (w > 0 ? " w" : "w") + std::to_string(other[0] % 10 < noise ? other[1] % 50 : dice[0] % 50);
    }
    lines.push_back(line);
  }
  return lines;
}

Bleu bleu(const Lines& hypotheses, const Lines& reference, const BleuOptions& options = {}) {
  const std::vector<Lines> references = {reference};
  return corpus_bleu(hypotheses, references, options);
}

TEST_CASE("the worked example scores as by hand", "[translation]") {
  const Bleu score = bleu({"the cat sat on the mat ."}, {"the cat is on the mat ."});
  CHECK(score.precisions[0] == Approx(600.0 / 7));
  CHECK(score.precisions[3] == Approx(25));
  CHECK(score.brevity_penalty == 1);
  CHECK(score.score == Approx(48.892302).epsilon(1e-8));
}

TEST_CASE("equal texts score 100, empty hypotheses 0, and the order of segments does not matter", "[translation]") {
  const Lines reference = sentences(40, 0, 1);
  Lines hypotheses = sentences(40, 3, 2), shuffled_reference = reference;
  CHECK(bleu(reference, reference).score == Approx(100).epsilon(1e-12));
  CHECK(bleu(Lines(40), reference).score == 0);
  const double before = bleu(hypotheses, reference).score;
  std::reverse(hypotheses.begin(), hypotheses.end());
  CHECK(bleu(hypotheses, reference).score < before);
  std::reverse(shuffled_reference.begin(), shuffled_reference.end());
  CHECK(bleu(hypotheses, shuffled_reference).score == before);
}

TEST_CASE("a reference's unknown word matches only where it may", "[translation]") {
  BleuOptions options;
  options.words = BleuWords::blanks;
  const Lines hypothesis = {"a b <unk> c d"}, reference = {"a b <unk> c d"};
  CHECK(bleu(hypothesis, reference, options).score == Approx(100).epsilon(1e-12));
  options.unknown_never_matches = true;
  CHECK(bleu(hypothesis, reference, options).matches == std::vector<double>{4, 2, 0, 0});
}

TEST_CASE("other numbers of references than of hypotheses are an error with both", "[translation]") {
  CHECK_THROWS_WITH(bleu({"a", "b"}, {"a"}),
                    "bleu: expected as many references as hypotheses: 2 hypotheses, 1 references in set 1");
  CHECK_THROWS_WITH(corpus_bleu(Lines{"a"}, {}, {}), "bleu: expected at least one set of references, got none");
}

struct Systems {
  explicit Systems(std::uint64_t noise) {
    const std::vector<Lines> references = {sentences(200, 0, 1)};
    system = count_segments(sentences(200, 3, 2), references, {});
    baseline = count_segments(sentences(200, noise, 3), references, {});
  }
  PairedBootstrap compare(const BootstrapOptions& options = {}) const {
    return paired_bootstrap(system, baseline, {}, options);
  }
  std::vector<BleuCounts> system, baseline;
};

TEST_CASE("a better system is told from a worse one and an equal one is not", "[translation]") {
  const PairedBootstrap worse = Systems(5).compare();
  CHECK(worse.system > worse.baseline);
  CHECK(worse.p_value < 0.01);
  CHECK(worse.wins > 0.99);
  CHECK(worse.low_difference > 0);
  CHECK(worse.low_difference < worse.mean_difference);
  CHECK(worse.mean_difference < worse.high_difference);
  CHECK(std::abs(worse.mean_difference - (worse.system - worse.baseline)) < 1);
  const PairedBootstrap equal = Systems(3).compare();
  CHECK(equal.p_value > 0.05);
  CHECK(equal.low_difference < 0);
  CHECK(equal.high_difference > 0);
}

TEST_CASE("a system compared with itself never differs", "[translation]") {
  Systems same(3);
  same.baseline = same.system;
  const PairedBootstrap result = same.compare({100, 1});
  CHECK(result.mean_difference == 0);
  CHECK(result.wins == 0);
  CHECK(result.p_value == Approx(1.0 / 101));  // as in sacreBLEU: no resample differs by more than 0
}

TEST_CASE("resamples are equal for any number of threads and differ by seed", "[translation]") {
  const Systems systems(4);
  set_thread_count(1);
  const PairedBootstrap one = systems.compare({200, 5});
  set_thread_count(3);
  const PairedBootstrap three = systems.compare({200, 5});
  set_thread_count(2);
  CHECK(one.mean_difference == three.mean_difference);
  CHECK(one.low_difference == three.low_difference);
  CHECK(one.p_value == three.p_value);
  CHECK(systems.compare({200, 6}).mean_difference != one.mean_difference);
}

TEST_CASE("a bootstrap of nothing or of different segments is an error", "[translation]") {
  Systems systems(4);
  CHECK_THROWS_WITH(systems.compare({0, 1}), "bootstrap: expected at least one resample, got 0");
  systems.baseline.pop_back();
  CHECK_THROWS_WITH(systems.compare(), "bootstrap: expected two systems of the same segments, got 200 and 199");
}

}  // namespace
}  // namespace etc::test
