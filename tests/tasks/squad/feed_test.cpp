// SQuAD windows as encoder input of an ETC and of a dense encoder, what the feed refuses, and the loss.
#include "tasks/squad/feed.h"

#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/squad/head.h"
#include "tests/support/catch.h"
#include "tests/support/small_config.h"
#include "tests/tasks/squad/small_questions.h"

using namespace etc;

namespace {

using Ids = std::vector<std::int32_t>;

data::LoadedExample worked_window() {
  auto converted = test::converted_question(test::small_question("a (unknown). b c d", "unknown", 3));
  return {0, 0, std::move(converted.examples.at(0))};
}

EncoderInput fed(const EncoderConfig& model, const data::LoadedExample& example) {
  feed::SequenceGlobals globals;
  globals.tokens_per_block = 4;
  globals.block_id = 1;
  return squad::feed({&example, 1}, model, globals, "test.h5");
}

}  // namespace

TEST_CASE("an ETC reads the question in copies and the text in blocks as global tokens", "[squad]") {
  const data::LoadedExample example = worked_window();
  const EncoderInput input = fed(test::small_config({.vocabulary = 64}), example);
  // CLS who q ? SEP | a ( un ##known | ) . b c | d SEP
  CHECK(input.global_token_ids == Ids{2, 4, 6, 5, 3, 1, 1, 1});
  CHECK(input.segment_ids == Ids{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(input.long_tokens() == 15);
  CHECK(input.global_tokens() == 8);
}

TEST_CASE("a dense encoder reads the window alone, with its segments", "[squad]") {
  DenseConfig model;
  model.vocab_size = 64;
  const EncoderInput input = fed(model, worked_window());
  CHECK(input.global_token_ids.empty());
  CHECK(input.global_tokens() == 0);
  CHECK(std::get<std::vector<std::int64_t>>(worked_window().features.at("token_ids")).size() == input.token_ids.size());
}

TEST_CASE("features that contradict each other are refused by name", "[squad]") {
  const EtcConfig model = test::small_config({.vocabulary = 64});
  const auto refuse = [&](const char* name, data::FeatureValue value) {
    data::LoadedExample example = worked_window();
    example.features[name] = std::move(value);
    CHECK_THROWS_WITH(fed(model, example), Catch::Contains("test.h5: example 1: ") && Catch::Contains(name));
  };
  using Numbers = std::vector<std::int64_t>;
  refuse("segment_ids", Numbers{0, 1});
  refuse("token_words", Numbers(15, 9));
  refuse("max_context", Numbers(15, 2));
  refuse("token_ids", Numbers(15, 64));
  refuse("start_position", std::int64_t{15});
  refuse("end_position", std::int64_t{-2});
  refuse("token_ids", Numbers{});
}

TEST_CASE("the loss is the mean of start and end over all positions, and its gradient agrees with differences",
          "[squad]") {
  register_cpu_backend();
  const std::vector<std::int64_t> offsets = {0, 4, 7}, labels = {2, 3, 0, 0};
  std::vector<float> logits = {0, 0, 1, 0, 2, 0, 3, 2, 0.5f, -1, 0.25f, 1, -2, 0};
  std::vector<float> gradient(logits.size());
  const auto loss = [&](float* d) {
    const auto losses = squad::window_losses({offsets, logits.data(), labels, 2, d});
    return (losses[0] + losses[1]) / 2;
  };
  CHECK(squad::window_losses({offsets, logits.data(), labels})[0] == Approx((1.4401897 + 0.3407530) / 2).margin(1e-6));
  loss(gradient.data());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    CAPTURE(i);
    constexpr float kStep = 1e-2f;
    const float kept = logits[i];
    logits[i] = kept + kStep;
    const double above = loss(nullptr);
    logits[i] = kept - kStep;
    const double below = loss(nullptr);
    logits[i] = kept;
    CHECK(gradient[i] == Approx((above - below) / (2 * kStep)).margin(1e-4));
  }
}

TEST_CASE("a window without targets has no loss", "[squad]") {
  register_cpu_backend();
  const std::vector<std::int64_t> offsets = {0, 2}, labels = {-1, -1};
  const std::vector<float> logits = {1, 2, 3, 4};
  CHECK(squad::window_losses({offsets, logits.data(), labels})[0] == 0);
}
