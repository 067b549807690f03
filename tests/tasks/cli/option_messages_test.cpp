// Messages for invalid option values: what was expected, and what was given.
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
       "etc benchmark: --lengths: expected a whole number from 1 to 67108864, got 0"},
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
      {{"eval", "--threads", "5000"}, "etc eval: --threads: expected a whole number from 1 to 4096, got 5000"},
      {{"sample", "lm", "--records", "0x10"}, "etc sample: --records: expected a whole number, got 0x10"},
      {{"sample", "lm", "--seed", "99999999999999999999"},
       "etc sample: --seed: expected a whole number from -9223372036854775808 to 9223372036854775807, got 9999"},
      {{"analyze", "--seed", "-1"},
       "etc analyze: --seed: expected a whole number from 0 to 18446744073709551615, got -1"},
      {{"train", "--seeds", "20000"}, "etc train: --seeds: expected a whole number from 1 to 10000, got 20000"},
      {{"train", "--seeds", "9223372036854775808"},
       "etc train: --seeds: expected a whole number from 1 to 10000, got 9"},
      {{"convert", "a", "--output", ""}, "etc convert: --output: expected a value, got an empty one"},
      {{"sample", "lm", "--output", ""}, "etc sample: --output: expected a value, got an empty one"},
      {{"train", "--steps", "5", "glue", "--output", "z"},
       "etc train: unexpected argument glue: a task comes first (etc train glue …)"},
      {{"--threads", "1", "eval"}, "etc: unknown option --threads: options follow the command (etc eval …)"},
      {{"train", "nq", "--task", "glue"}, "etc train: --task: expected one value, got nq glue (is it given twice?)"},
      {{"eval", "--data", "--threads", "1"}, "etc eval: --data: expected a value, got the option --threads"},
      {{"benchmark", "--lengths", "99999999999"},
       "etc benchmark: --lengths: expected a whole number from 1 to 67108864"},
      {{"prepare", "hotpotqa", "--split", "dev", "--input", "a", "--vocab", "b", "--output", "c", "--is-training",
        "no"},
       "etc prepare: --is-training: expected true or false, got no"},
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
