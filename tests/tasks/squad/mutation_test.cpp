// Damaged SQuAD files give a fault with a place, or windows that the feed accepts.
#include "etc_core/nn/etc_config.h"
#include "tasks/squad/feed.h"
#include "tests/support/small_config.h"
#include "tests/tasks/raw_mutants.h"
#include "tests/tasks/squad/small_questions.h"

using namespace etc;
using namespace etc::squad;

namespace {

void run_mutants(std::uint64_t count) {
  std::vector<std::unique_ptr<prepare::JsonPreparation>> preparations;
  for (const bool trains : {true, false}) {
    for (const bool version_2 : {true, false}) {
      PrepareConfig config = test::small_squad_config(12, 3);
      config.is_training = trains;
      config.version_2 = version_2;
      preparations.push_back(std::make_unique<SquadPreparation>(config, test::tokenizer_of(test::squad_vocabulary())));
    }
  }
  Json impossible = test::small_question("\u00a0a \u0301(b) unknown", "x", 0, "3");
  impossible["question"]["answers"] = Json::array();
  impossible["question"]["is_impossible"] = true;
  const Json file = test::squad_file({test::small_question("a b c d e a b c d e", "d e", 6), impossible,
                                      test::small_question("q\u2028 unknown-a", "unknown", 3, "2")});
  const EtcConfig model = test::small_config({.vocabulary = 64});
  test::RawMutants mutants(std::move(preparations), {[&](const data::Example& example) {
                             CHECK_NOTHROW(check_example(example, model, "mutant"));
                           }});
  mutants.run(
      file.dump(1), [&](std::uint64_t seed) { return json_line(test::with_odd_value(file, seed, test::odd_values())); },
      count);
}

}  // namespace

TEST_CASE("damaged SQuAD files give faults or valid windows", "[squad]") {
  run_mutants(200);
}

TEST_CASE("many more damaged SQuAD files give faults or valid windows", "[squad][slow]") {
  run_mutants(5000);
}
