// Scores over a pass: pages that were predicted, and those that could not be prepared.
#include "tasks/openkp/predictions.h"

#include <map>

#include "etc_core/ops/register.h"
#include "tasks/openkp/prediction_file.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using namespace etc::openkp;

namespace {

using Numbers = std::vector<std::int64_t>;
using Words = std::vector<std::string>;

// A page of the words "blue" and "lake", of which the first is its key phrase.
data::LoadedExample page(const std::string& url) {
  data::LoadedExample loaded;
  loaded.features = {{"id", url},
                     {"num_words", std::int64_t{2}},
                     {"text", std::string("blue lake")},
                     {"key_phrases", Words{"blue"}},
                     {"label_start_idx", Numbers{0}},
                     {"label_phrase_len", Numbers{1}}};
  return loaded;
}

data::Fault rejected(const std::string& url, const Words& key_phrases) {
  data::Fault fault;
  fault.id = url;
  fault.details["key_phrases"] = key_phrases;
  return fault;
}

}  // namespace

TEST_CASE("a page that was rejected counts as 0, unless another one of its url is scored", "[tasks][openkp]") {
  ops::register_cpu_ops();
  const test::TemporaryFolder folder;
  ScoringOptions scoring;
  scoring.longest_phrase = 1;
  OpenkpPredictions predictions({folder / "p.jsonl", {}, 0}, scoring, {});
  const std::vector<data::LoadedExample> pages = {page("a")};
  const HeadOutput scores = {Var(Tensor::from({2, 1}, {2, 1}, Purpose::activations))};
  predictions.add(pages, {}, scores);
  const auto metric = [&](const char* name) {
    const auto metrics = predictions.metrics();
    return std::map<std::string, double>(metrics.begin(), metrics.end()).at(name);
  };
  CHECK(metric("pages") == 1);
  predictions.add_rejected(rejected("a", {"blue"}));
  CHECK(metric("pages") == 1);
  CHECK(metric("P@1") == 1);
  predictions.add_rejected(rejected("b", {"x"}));
  predictions.add_rejected(rejected("b", {"x"}));  // one url, one page
  predictions.add_rejected(rejected("c", {}));     // nothing to compare with
  predictions.add_rejected(rejected("", {"x"}));   // unreadable urls are not known to be equal
  predictions.add_rejected(rejected("", {"x"}));
  CHECK(metric("pages") == 4);
  CHECK(metric("P@1") == 0.25);
  predictions.finish();
  CHECK(read_predictions(folder / "p.jsonl") == PhraseMap{{"a", {{"blue"}, {"lake"}}}, {"b", {}}, {"c", {}}});
}
