// What the program says of options whose words cannot be meant: what was expected, and what it got.
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

using namespace etc;
using Words = std::vector<std::string>;

TEST_CASE("an option that cannot be meant is told with what is expected and what was given", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"eval", "--threads", "0"}, "etc eval: --threads: expected a whole number from 1 to 4096, got 0"},
      {{"eval", "--threads", "-3"}, "etc eval: --threads: expected a whole number from 1 to 4096, got -3"},
      {{"eval", "--threads", "two"}, "etc eval: --threads: expected a whole number from 1 to 4096, got two"},
      {{"encode", "--threads", "1.5"}, "etc encode: --threads: expected a whole number from 1 to 4096, got 1.5"},
      {{"eval", "--threads", "99999999999999"}, "etc eval: --threads: expected a whole number"},
      {{"prepare", "--threads", "0"}, "etc prepare: --threads: expected a whole number from 1 to 4096, got 0"},
      {{"analyze", "--seed", "18446744073709551616"},
       "etc analyze: --seed: expected a whole number from 0 to 18446744073709551615, got 18446744073709551616"},
      {{"serve", "--port", "070000"}, "etc serve: --port: expected a whole number from 0 to 65535, got 070000"},
      {{"prepare", "--max-rejects", "-1"}, "etc prepare: --max-rejects: expected a whole number of at least 0, got -1"},
      {{"predict", "--n-best", "0"}, "etc predict: --n-best: expected a whole number of at least 1, got 0"},
      {{"benchmark", "--lengths", "512", "0"},
       "etc benchmark: --lengths: expected a whole number of at least 1, got 0"},
      {{"eval", "--device", "cud"}, "etc eval: --device: expected cpu, cuda or auto, got cud (did you mean cuda?)"},
      {{"eval", "--deterministic", "no"}, "etc eval: --deterministic: expected run or strict, got no"},
      {{"eval", "--compute", "fp8"}, "etc eval: --compute: expected auto, fp32, bf16 or int8, got fp8"},
      {{"convert", "--from", "gpt"}, "etc convert: --from: expected tf, bert, roberta, nezha, xlnet or t5, got gpt"},
      {{"convert", "--seed", "many"}, "etc convert: --seed: expected a whole number, got many"},
      {{"predict", "--model", "a", "--model", "b"},
       "etc predict: --model: expected one value, got a b (is it given twice?)"},
      {{"train", "--config", "a", "--config", "b"}, "etc train: --config: expected one value, got a b"},
      {{"train", "--steps", "1", "--steps", "2"}, "etc train: --steps: expected "},
      {{"predict", "--model"}, "etc predict: --model: expected a value, got none"},
      {{"eval", "--threads"}, "etc eval: --threads: expected a whole number, got none"},
      {{"prepare", "--strict=maybe"}, "etc prepare: --strict: expected no value, got maybe"},
      {{"train", "--learning-rate", "fast"}, "etc train: --learning-rate: expected a number, got \"fast\""},
      {{"prepare"}, "etc prepare: --task is required"},
      {{}, "etc: expected a command: sample, prepare, train, eval"}};
  for (const auto& [words, message] : cases) {
    const test::Result result = test::run_program(words, folder.path());
    CAPTURE(words, result.err);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Catch::Contains(message));
    CHECK(result.err.size() < 300);
    for (const char* jargon : {"not in range", "required but received", "At Most", "Could not convert", "e+", "{"}) {
      CHECK_THAT(result.err, !Catch::Contains(jargon));
    }
  }
}
