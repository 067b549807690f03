// etc encode with dense encoders: masks of --inputs, and the same states from ids, from a text and from prepared data.
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/seq2seq/config.h"
#include "tasks/train/fed_encoder.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"
#include "tests/tasks/command_scene.h"

using namespace etc;
using Catch::Contains;
using test::joined;
using test::Words;

namespace {

using Method = PositionConfig::Method;
using Attention = DenseConfig::Attention;

constexpr std::int64_t kVocabulary = 600;

DenseConfig small_config(Method method = Method::none) {
  DenseConfig config;
  config.vocab_size = kVocabulary;
  config.hidden_size = 8;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.intermediate_size = 16;
  config.initializer_range = 0.5;  // large, so that the effect of positions is visible in the states
  config.max_absolute_position_embeddings = method == Method::none ? 300 : 0;
  config.relative_positions = method;
  config.relative_clip = 3;
  return config;
}

DenseConfig windowed(DenseConfig config) {
  config.local_radius = 2;
  return config;
}

// Ids of one sequence; segments and mask [L, L] if it has them.
struct Sequence {
  std::vector<std::int64_t> ids, segments = {}, mask = {};
};

struct EncodingScene : test::CommandScene {
  explicit EncodingScene(const std::string& task = "nq") : CommandScene(task) {}

  // A model folder with fresh weights.
  std::string model(const EncoderConfig& config) const {
    register_cpu_backend();
    ParameterSet parameters;
    const auto encoder = config.make_encoder(parameters);
    parameters.initialize(1);
    save_model(path("model"), {{"model", config.to_json()}}, parameters);
    return path("model");
  }

  Words inputs(const Sequence& sequence) const {
    const std::int64_t L = std::ssize(sequence.ids);
    std::filesystem::remove(path("in.h5"));
    test::H5Edit file(path("in.h5"));
    file.put_integers("/inputs/token_ids", sequence.ids, 8, true, {1, L}, {});
    if (!sequence.segments.empty()) file.put_integers("/inputs/segment_ids", sequence.segments, 8, true, {1, L}, {});
    if (!sequence.mask.empty()) file.put_integers("/inputs/self_att_mask", sequence.mask, 8, true, {1, L, L}, {});
    return {"encode", "--inputs", path("in.h5"), "--model", path("model"), "--output", path("out.h5")};
  }

  // [L, H]
  std::vector<float> states(const Sequence& sequence) const {
    run(inputs(sequence));
    return test::GoldenFile(path("out.h5")).read<float>("outputs/long").values;
  }

  std::string refusal(const Sequence& sequence) const {
    std::filesystem::remove(path("out.h5"));
    const test::Result result = try_run(inputs(sequence));
    CHECK(result.code == 1);
    CHECK(!std::filesystem::exists(path("out.h5")));
    return result.err;
  }
};

const std::vector<std::int64_t> kIds = {3, 1, 11, 20, 7, 4, 9, 2, 30, 8};

Sequence masked(const std::vector<std::int64_t>& ids, std::size_t seen) {
  Sequence sequence{ids};
  for (std::size_t i = 0; i < ids.size() * ids.size(); ++i) sequence.mask.push_back(i % ids.size() < seen ? 1 : 0);
  return sequence;
}

void check_equal(const std::vector<float>& got, const std::vector<float>& expected, std::size_t count) {
  REQUIRE(got.size() >= count);
  REQUIRE(expected.size() >= count);
  for (std::size_t i = 0; i < count; ++i) {
    CAPTURE(i);
    REQUIRE(got[i] == Approx(expected[i]).margin(1e-5));
  }
}

}  // namespace

TEST_CASE("a mask of ones is no mask, and padding that nobody sees is none, whatever the relative positions", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const EncodingScene scene;
  for (const Method method : {Method::none, Method::etc, Method::shaw, Method::t5}) {
    for (const DenseConfig& config : {small_config(method), windowed(small_config(method))}) {
      CAPTURE(json_line(config.to_json()));
      scene.model(config);
      const std::vector<float> plain = scene.states({kIds});
      check_equal(scene.states(masked(kIds, kIds.size())), plain, plain.size());
      std::vector<std::int64_t> padded = kIds;
      padded.insert(padded.end(), 3, 0);
      check_equal(scene.states(masked(padded, kIds.size())), plain, plain.size());
    }
  }
}

TEST_CASE("a mask that an encoder cannot take is refused by its name", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const EncodingScene scene;
  const Sequence with_mask = masked(kIds, kIds.size());
  const auto refused = [&](const EncoderConfig& config) {
    scene.model(config);
    CHECK(!scene.states({kIds}).empty());
    return scene.refusal(with_mask);
  };
  DenseConfig own = small_config();
  own.causal = true;
  CHECK_THAT(refused(own), Contains("in.h5:/inputs/self_att_mask: expected none with causal") && !Contains("labels"));
  own = small_config();
  own.attention = Attention::bigbird;
  CHECK_THAT(refused(own), Contains("/inputs/self_att_mask: expected none with attention bigbird"));
  own.attention = Attention::performer;
  own.attention_probs_dropout_prob = 0;
  CHECK_THAT(refused(own), Contains("/inputs/self_att_mask: expected none with attention performer"));

  Seq2SeqConfig both;
  both.vocab_size = kVocabulary;
  both.hidden_size = 8;
  both.num_hidden_layers = both.num_decoder_layers = 1;
  both.num_attention_heads = 2;
  both.intermediate_size = 16;
  CHECK_THAT(refused(both), Contains("/inputs/self_att_mask: expected none with an encoder-decoder"));

  DenseConfig far = small_config(Method::etc);
  far.relative_clip = 128;
  CHECK_THAT(refused(far), Contains("/inputs/self_att_mask: expected a model of relative_clip at most 127 beside "
                                    "relative_positions etc, got 128"));
  far.relative_clip = 127;
  scene.model(far);
  check_equal(scene.states(with_mask), scene.states({kIds}), kIds.size() * 8);
  far = small_config(Method::shaw);  // labels do not select rows of its tables
  far.relative_clip = 128;
  scene.model(far);
  check_equal(scene.states(with_mask), scene.states({kIds}), kIds.size() * 8);
}

TEST_CASE("a text has the states of its ids in a dense encoder", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const EncodingScene scene;
  test::write_file(scene.path("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nharbour\nis\nold\nquiet\n.\n");
  for (const DenseConfig& config : {small_config(), windowed(small_config(Method::etc))}) {
    CAPTURE(json_line(config.to_json()));
    const std::string model = scene.model(config);
    const auto encode = [&](const std::string& kind) {
      scene.run({"encode", "--text", "-", "--model", model, "--vocab", scene.path("vocab.txt"), "--states", kind,
                 "--output", scene.path("text.h5")},
                R"("The old harbour is quiet. The harbour is old.")");
      return test::GoldenFile(scene.path("text.h5")).read_ragged<float>("examples/" + kind).at(0);
    };
    const std::vector<float> of_text = encode("long");
    const auto ids = test::GoldenFile(scene.path("text.h5")).read_ragged<std::int64_t>("examples/long_token_ids").at(0);
    CHECK(ids == std::vector<std::int64_t>{2, 5, 8, 6, 7, 9, 10, 5, 6, 7, 8, 10, 3});
    CHECK(of_text == scene.states({ids, std::vector<std::int64_t>(ids.size(), 0)}));
    const std::vector<float> mean = encode("mean");
    for (std::size_t h = 0; h < mean.size(); ++h) {
      double sum = 0;  // without CLS and SEP
      for (std::size_t i = 1; i + 1 < ids.size(); ++i) sum += static_cast<double>(of_text[i * 8 + h]);
      CHECK(mean[h] == Approx(sum / static_cast<double>(ids.size() - 2)).margin(1e-6));
    }
  }
}

TEST_CASE("all layers of prepared examples are written, of an order that begins with a feed-forward, too", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const EncodingScene scene("nq");
  scene.run({"sample", "--task", "nq", "--records", "2", "--long-tokens", "100", "--output", scene.path("sample")});
  scene.prepare("train", scene.path("sample/train.jsonl"), scene.path("sample/vocab.txt"), "train.h5",
                {"--seq-len", "64", "--stride", "32", "--question-len", "12", "--global-seq-len", "24"});
  DenseConfig config = small_config();
  config.use_residual_attention = true;
  config.sublayer_order = "fsfs";
  scene.run({"encode", "--data", scene.path("train.h5"), "--model", scene.model(config), "--all-layers", "--output",
             scene.path("states.h5")});
  const test::GoldenFile states(scene.path("states.h5"));
  CHECK(states.has("examples/layer_1_scores_self"));
  CHECK(!states.has("examples/layer_2_long"));
  CHECK(states.read_ragged<float>("examples/layer_1_long") == states.read_ragged<float>("examples/long"));
}

TEST_CASE("the carried scores of given ids are written for every pattern of attention", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const EncodingScene scene;
  const std::int64_t L = std::ssize(kIds);
  const auto scores_of = [&](Attention attention) {
    DenseConfig config = small_config();
    config.attention = attention;
    config.use_residual_attention = true;
    scene.model(config);
    scene.run(joined(scene.inputs({kIds}), {"--all-layers"}));
    return test::GoldenFile(scene.path("out.h5")).read<float>("outputs/layer_1/scores_self");
  };
  const auto of_blocks = scores_of(Attention::bigbird);  // all tokens in one block, which they see as a whole
  const auto of_window = scores_of(Attention::full);
  REQUIRE(of_blocks.shape == std::vector<std::int64_t>{1, 2, L, L});
  REQUIRE(of_window.shape == std::vector<std::int64_t>{1, 2, L, 2 * L - 1});
  for (std::int64_t row = 0; row < 2 * L; ++row) {
    for (std::int64_t key = 0; key < L; ++key) {
      CAPTURE(row, key);
      const float in_window = of_window.values.at(row * (2 * L - 1) + L - 1 + key - row % L);
      CHECK(of_blocks.values.at(row * L + key) == Approx(in_window).margin(1e-5));
    }
  }
}

TEST_CASE("prepared examples have the states of their ids in a dense encoder", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const EncodingScene scene("nq");
  scene.run({"sample", "--task", "nq", "--records", "4", "--long-tokens", "100", "--output", scene.path("sample")});
  scene.prepare("train", scene.path("sample/train.jsonl"), scene.path("sample/vocab.txt"), "train.h5",
                {"--seq-len", "64", "--stride", "32", "--question-len", "12", "--global-seq-len", "24"});
  for (const DenseConfig& config : {small_config(), windowed(small_config(Method::etc))}) {
    CAPTURE(json_line(config.to_json()));
    const std::string model = scene.model(config);
    scene.run({"encode", "--data", scene.path("train.h5"), "--model", model, "--output", scene.path("states.h5")});
    const test::GoldenFile states(scene.path("states.h5"));
    const auto of_data = states.read_ragged<float>("examples/long");
    const auto ids = states.read_ragged<std::int64_t>("examples/long_token_ids");
    CHECK(!states.has("examples/global"));

    const FedEncoder fed({scene.path("train.h5")}, model, false);
    REQUIRE(std::ssize(of_data) == fed.reader()->size());
    REQUIRE(of_data.size() > 1);
    for (const std::size_t at : {std::size_t{0}, of_data.size() - 1}) {
      CAPTURE(at);
      const auto index = static_cast<std::int64_t>(at);
      const std::vector<data::LoadedExample> alone = {{index, index, fed.reader()->read(index)}};
      Tape tape(Recording::off);
      const EncoderInput input = fed.feed(tape, alone);
      const Sequence sequence{ids[at], {input.segment_ids.begin(), input.segment_ids.end()}};
      REQUIRE(input.position_ids.empty());
      CHECK(of_data[at] == scene.states(sequence));
    }
  }
}
