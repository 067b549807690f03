// Answers decoded from logits that are on an emulated device.
#include "etc_core/nn/backends.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/ops/register.h"
#include "tasks/nq/predictions.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

using Numbers = std::vector<std::int64_t>;

// Windows of two documents, of any length; the last one is labelled on request.
struct Windows {
  std::vector<data::LoadedExample> examples;
  EncoderInput input;

  explicit Windows(bool labelled) {
    for (const std::int64_t length : {5, 70, 300}) {
      const std::int64_t index = std::ssize(examples);
      Numbers token_pos(static_cast<std::size_t>(length), -1);
      for (std::int64_t i = 2; i + 1 < length; ++i) token_pos[static_cast<std::size_t>(i)] = 40 * index + i;
      const std::int64_t label = labelled && index == 2 ? 1 : -1;
      data::LoadedExample& example = examples.emplace_back();
      example.features = {{"id", std::to_string(index)}, {"unique_ids", index / 2 + 1}, {"token_pos", token_pos}};
      for (const char* name : {"sa_start", "sa_end", "la_start", "la_end", "answer_type"}) {
        example.features[name] = label;
      }
      input.long_offsets.push_back(input.long_offsets.back() + length);
    }
  }
};

}  // namespace

TEST_CASE("answers decoded on an emulated device are those of the host, with labels and without", "[tasks][cuda]") {
  register_cpu_backend();
  register_cuda_backend();
  for (const bool labelled : {false, true}) {
    CAPTURE(labelled);
    const Windows windows(labelled);
    const std::int64_t tokens = windows.input.long_offsets.back();
    auto logits = random_floats(tokens * 4, 5);
    for (std::size_t i = 0; i < logits.size(); i += 3) logits[i] = std::round(logits[i] * 8) / 8;  // many equal ones
    const auto decoded = [&](Device device) {
      const TemporaryFolder folder;
      nq::DocumentPredictions predictions({folder / "answers.json", folder / "more.jsonl", 5},
                                          {.score = nq::ScoreKind::difference});
      predictions.add(windows.examples, windows.input,
                      {Var(Tensor::from(logits, {tokens, 4}, Purpose::activations, device)),
                       Var(Tensor::from(random_floats(15, 6), {3, 5}, Purpose::activations, device))});
      predictions.finish();
      return read_file(folder / "answers.json") + read_file(folder / "more.jsonl");
    };
    CHECK(decoded(Device::cuda) == decoded(Device::cpu));
  }
}
