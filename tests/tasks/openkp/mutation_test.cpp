// Damaged files: raw pages give faults or pages that the feed accepts; prediction and gold files give an error or
// scores.
#include "etc_core/base/error.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/openkp/feed.h"
#include "tasks/openkp/prediction_file.h"
#include "tasks/openkp/prepare.h"
#include "tests/tasks/openkp/small_pages.h"
#include "tests/tasks/prediction_mutants.h"
#include "tests/tasks/raw_mutants.h"

using namespace etc;
using namespace etc::openkp;

namespace {

// The elements of the second page are a list instead of a string, so that values inside them are replaced as well.
Json base_records() {
  Json odd = test::worked_page(
      Json::array({test::element("\u0130stanbul  \u03a3\u03a3", 0, 3, test::box(1, 2, 3, 4, 1, 0, 0, 9.5, 1),
                                 test::box(-1, 2, 3, 4, 0, 0, 1, 50, 0))}),
      {{"\u0130stanbul"}, {" ", "\u03c3\u03c2"}, Json::array(), {"a", "b", "c", "d", "e", "f"}});
  odd["text"] = "\u0130stanbul  \u03a3\u03a3";
  odd["url"] = "http://ex.org/\u00fc";
  odd["extra"] = 5;
  Json open = test::worked_page(test::worked_elements(), test::kWorkedPhrases);
  open["VDOM"] = test::worked_elements();
  open["url"] = "http://ex.org/o";
  Json unlabelled = test::worked_page(test::worked_elements(), nullptr);
  unlabelled["url"] = "http://ex.org/u";
  return {test::worked_page(test::worked_elements(), test::kWorkedPhrases), open, odd, unlabelled};
}

void run_raw_mutants(std::uint64_t count) {
  std::vector<std::unique_ptr<prepare::JsonPreparation>> preparations;
  for (const bool labels : {true, false}) {
    for (const std::int64_t block : {0, 3}) {
      PrepareConfig config;
      config.labels_required = labels;
      config.fixed_block_len = block;
      config.long_max_length = 40;
      config.global_max_length = 16;
      config.first_occurrence = true;
      preparations.push_back(std::make_unique<OpenkpPreparation>(config, test::small_vocabulary()));
    }
  }
  EtcConfig model;
  model.vocab_size = 64;
  test::RawMutants mutants(std::move(preparations),
                           {[&](const data::Example& example) { check_example(example, model, "mutant"); }});
  // Two more pages with the url of others; the first of them has more valid phrases.
  Json pages = base_records();
  pages.push_back(test::worked_page(test::worked_elements(), {{"Fishing"}, {"dawn"}, {"Blue", "Lake"}, {"Guide"}}));
  pages.push_back(pages[1]);
  mutants.run(pages, count);
}

void run_prediction_mutants(std::uint64_t count) {
  Json pages = base_records();
  pages.erase(3);  // the unlabelled page
  const std::string gold = test::raw_text(pages, data::RecordLayout::lines);
  std::string predictions;
  for (const Json& page : pages) {
    predictions +=
        json_line(Json{{"url", page["url"]}, {"KeyPhrases", {{"blue lake trout"}, {"fishing"}, {"\u0130"}}}}) + "\n";
  }
  const bool both = test::run_prediction_mutants(predictions, gold, count, [](const auto& file, const auto& raw) {
    test::check_metrics(evaluate(read_predictions(file), read_gold({raw}), "p.jsonl"));
  });
  CHECK(both);
}

}  // namespace

TEST_CASE("damaged OpenKP files give faults or pages the feed accepts", "[tasks][openkp]") {
  run_raw_mutants(200);
}

TEST_CASE("damaged prediction and gold files give an error or scores", "[tasks][openkp]") {
  run_prediction_mutants(200);
}

TEST_CASE("many more damaged OpenKP files give faults or pages the feed accepts", "[tasks][openkp][slow]") {
  run_raw_mutants(5000);
}

TEST_CASE("many more damaged prediction and gold files give an error or scores", "[tasks][openkp][slow]") {
  run_prediction_mutants(5000);
}
