// Running scores that a test gives a ScoreState, instead of computing the layers before.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sparse/score_state.h"

namespace etc::test {

// The inverse of export_scores(): C = external, rounded to the element's step; pairs without a valid score are 0. The
// export of elements numbered from 1 tells where each of them is in the external form.
inline void import_scores(const sparse::TypeTiles& tiles, std::int64_t heads, const std::vector<float>& external,
                          sparse::ScoreElement* inside) {
  std::vector<float> numbers(static_cast<std::size_t>(sparse::score_elements(tiles, heads))), places(external.size());
  std::iota(numbers.begin(), numbers.end(), 1.0f);  // exact: tests have fewer than 2^24 scores
  sparse::export_scores(tiles, heads, numbers.data(), places.data());
  std::fill_n(inside, numbers.size(), sparse::ScoreElement{0});
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] == 0 || !(std::fabs(external[i]) <= sparse::kScoreLimit)) continue;
    inside[static_cast<std::int64_t>(places[i]) - 1] =
        static_cast<sparse::ScoreElement>(std::lrint(external[i] * sparse::kScoreStepsPerUnit));
  }
}

// Sets the scores of all operators' types, on the host, as if layers 0 … layer had been summed. external: by the types'
// indices.
inline void import_running(sparse::ScoreState& state, const sparse::ScoredOperators& operators, std::int64_t heads,
                           std::int64_t layer, const std::vector<std::vector<float>>& external) {
  for (const sparse::AttentionTiles* tiles : operators) {
    sparse::LayerScores scores;
    for (std::int64_t l = 0; l <= layer; ++l) scores = state.forward(l, *tiles->op);
    for (std::size_t t = 0; t < scores.size(); ++t) {
      const sparse::TypeTiles& type = tiles->types[t];
      import_scores(type, heads, external.at(static_cast<std::size_t>(type.type.index)), scores[t].running);
    }
  }
}

}  // namespace etc::test
