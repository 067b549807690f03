// Invalid inputs are errors that name tensor, position and limit.
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/nn/tiny_model.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;
using Catch::Contains;

namespace {

template <typename Change>
void check_refused(const EtcConfig& config, const std::string& message, Change&& change) {
  TinyModel model(config);
  EncoderInput input = tiny_input(config, {6, 4}, {3, 2});
  change(input);
  CAPTURE(message);
  REQUIRE_THROWS_WITH(model.infer(input), Contains(message));
}

}  // namespace

TEST_CASE("impossible inputs are refused, naming tensor, place and limit", "[nn]") {
  const EtcConfig config = tiny_config();
  check_refused(config, "encoder: long_offsets: expected offsets that begin with 0, got 1",
                [](EncoderInput& input) { input.long_offsets[0] = 1; });
  check_refused(config, "encoder: long_offsets: expected offsets that begin with 0, got none",
                [](EncoderInput& input) { input.long_offsets.clear(); });
  check_refused(config, "encoder: global_offsets: expected non-decreasing, got 5 after 7 at 2",
                [](EncoderInput& input) { input.global_offsets[1] = 7; });
  check_refused(config, "long_offsets and global_offsets must have equal lengths: [3] and [4]",
                [](EncoderInput& input) { input.global_offsets.push_back(5); });
  check_refused(config, "encoder: token_ids: expected [T=10], got [9]",
                [](EncoderInput& input) { input.token_ids.pop_back(); });
  check_refused(config, "encoder: global_segment_ids: expected [U=5], got [2]", [](EncoderInput& input) {
    input.global_segment_ids = {1, 1};
  });
  check_refused(config, "encoder: sample_ordinals: expected [B=2], got [1]",
                [](EncoderInput& input) { input.sample_ordinals = {1}; });
  check_refused(config, "encoder: long_embedding_adder: expected [T=10, H=12], got [9, 12]", [](EncoderInput& input) {
    input.long_embedding_adder = Var(Tensor::zeros({9, 12}, Purpose::activations));
  });
  check_refused(config, "position_ids: given, but max_absolute_position_embeddings is 0",
                [](EncoderInput& input) { input.position_ids.assign(10, 0); });
  check_refused(config, "encoder: labels.l2l: expected 70 labels, got 5",
                [](EncoderInput& input) { input.labels.l2l = Buffer<std::uint8_t>(5, Purpose::labels); });
  check_refused(config, "encoder: labels.l2g: missing, but labels.l2l select relative vectors",
                [](EncoderInput& input) { input.labels.l2g = {}; });
  check_refused(config, "encoder: memory: expected none, since an ETC keeps none, got 3 rows", [](EncoderInput& input) {
    input.memory.offsets = {0, 2, 3};
  });
}

TEST_CASE("ids outside their tables are refused, naming example and position", "[nn]") {
  EtcConfig config = tiny_config();
  check_refused(config, "token_ids: example 1, position 2: expected an id from 0 to 19, got 20",
                [](EncoderInput& input) { input.token_ids[8] = 20; });
  check_refused(config, "global_token_ids: example 0, position 1: expected an id from 0 to 19, got -1",
                [](EncoderInput& input) { input.global_token_ids[1] = -1; });
  config.max_absolute_position_embeddings = 7;
  const auto position = [](std::size_t token, std::int32_t id) {
    return [=](EncoderInput& input) {
      input.position_ids.assign(10, 0);
      input.position_ids[token] = id;
    };
  };
  const std::string expected = "expected an id from 0 to 6, since max_absolute_position_embeddings=7, got 7 (positions";
  check_refused(config, "encoder: position_ids: example 0, position 5: " + expected, position(5, 7));
  check_refused(config, "encoder: position_ids: example 1, position 3: " + expected, position(9, 7));
  check_refused(config, "embedding: position_ids: example 1, position 0: expected an id from 0 to 6, got -1",
                position(6, -1));
  check_refused(config, "encoder: global_position_ids: example 1, position 0: " + expected, [](EncoderInput& input) {
    input.global_position_ids = {0, 1, 6, 7, 0};
  });
  config.max_absolute_position_embeddings = 5;
  check_refused(config, "encoder: long length: example 0: expected at most max_absolute_position_embeddings=5, got 6",
                [](EncoderInput&) {});
  config.max_absolute_position_embeddings = 2;
  check_refused(config, "encoder: global length: example 0: expected at most max_absolute_position_embeddings=2, got 3",
                [](EncoderInput& input) { input.position_ids.assign(10, 0); });
}

TEST_CASE("labels that the model has no vectors for are refused", "[nn]") {
  EtcConfig config = tiny_config();
  check_refused(config, "expected a label below R=9 or 255 (masked), got 9",
                [](EncoderInput& input) { input.labels.l2g.data()[2] = 9; });
  config.relative_pos_max_distance = 0;
  config.relative_vocab_size.reset();
  TinyModel model(config);
  EncoderInput input = tiny_input(tiny_config(), {6, 4}, {3, 2});
  REQUIRE_THROWS_WITH(model.infer(input),
                      Contains("labels.l2l select relative vectors, but relative_vocab_size is null"));
}

TEST_CASE("training needs a tape that records and parameters that have values", "[nn]") {
  const EtcConfig config = tiny_config();
  TinyModel model(config);
  const EncoderInput input = tiny_input(config, {6}, {3});
  Tape silent(Recording::off);
  ForwardOptions options;
  options.training = true;
  REQUIRE_THROWS_WITH(model.encoder.forward(silent, input, options), Contains("training needs a tape that records"));
  ParameterSet empty;
  EtcEncoder encoder(config, empty);
  REQUIRE_THROWS_WITH(encoder.forward(silent, input, {}), Contains("has no value yet"));
}
