// Encoder-decoders: forward against the formulas in double, gradients, incremental decoding, ADMIN, initial values.
#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/seq2seq/admin_fold.h"
#include "etc_core/nn/seq2seq/admin_profile.h"
#include "etc_core/nn/seq2seq/incremental_decoder.h"
#include "tests/core/nn/admin_omegas.h"
#include "tests/core/nn/small_seq2seq.h"
#include "tests/reference/seq2seq.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/numbers.h"
#include "tests/support/worst.h"

namespace etc::test {
namespace {

using Norm = Seq2SeqConfig::Norm;
using Catch::Contains;

Reals reals_of(const Tensor& tensor) {
  return {tensor.data(), tensor.data() + tensor.size()};
}

ReferenceSeq2Seq reference_of(const SmallSeq2Seq& model) {
  const Seq2SeqConfig& config = model.encoder.config();
  ReferenceSeq2Seq reference;
  for (const auto& parameter : model.parameters.all())
    reference.parameters[parameter->name] = reals_of(parameter->value);
  reference.hidden = config.hidden_size;
  reference.heads = config.num_attention_heads;
  reference.inner = config.intermediate_size;
  reference.encoder_layers = config.num_hidden_layers;
  reference.decoder_layers = config.num_decoder_layers;
  reference.norm = config.to_json().at("norm").get<std::string>();
  reference.mean = config.use_running_mean;
  const std::vector<std::string>& carrying = config.residual_attention_types;
  for (std::size_t i = 0; i < 3; ++i) {
    reference.carried[i] = config.use_residual_attention &&
                           std::find(carrying.begin(), carrying.end(), config.attention_types()[i]) != carrying.end();
  }
  return reference;
}

double largest_difference(const Reals& expected, const float* got) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    test::keep_worst(worst, std::abs(static_cast<double>(got[i]) - expected[i]));
  }
  return worst;
}

TEST_CASE("encoder-decoders of every kind have the states of the formulas, in batches of any lengths", "[nn]") {
  const Pairs pairs({{4, 3}, {1, 5}, {21, 18}});
  for (const Seq2SeqConfig& config : seq2seq_variants()) {
    CAPTURE(name_of(config));
    SmallSeq2Seq model(config);
    const ReferenceSeq2Seq reference = reference_of(model);
    Tape tape(Recording::off);
    const SmallSeq2Seq::States states = model.run(tape, pairs);
    for (std::size_t b = 0; b < 3; ++b) {
      const auto part = [](const std::vector<std::int32_t>& ids, const std::vector<std::int64_t>& offsets,
                           std::size_t of) {
        return std::vector<std::int32_t>(ids.begin() + offsets[of], ids.begin() + offsets[of + 1]);
      };
      Reals encoded;
      const Reals decoded = reference.decode(part(pairs.source.token_ids, pairs.source.long_offsets, b),
                                             part(pairs.target.target_ids, pairs.target.target_offsets, b), encoded);
      // Outputs of at most 15 sub-layers, the largest of some 10: the fp32 rounding error grows with each.
      const std::int64_t S = pairs.source.long_offsets[b], T = pairs.target.target_offsets[b];
      CHECK(largest_difference(encoded, states.encoded.value().data() + S * config.hidden_size) < 3e-5);
      CHECK(largest_difference(decoded, states.decoded.value().data() + T * config.hidden_size) < 3e-5);
    }
  }
}

TEST_CASE("encoder-decoders of every kind have the gradients of central differences", "[nn]") {
  const Pairs pairs({{3, 2}, {1, 3}});
  for (Seq2SeqConfig config : seq2seq_variants()) {
    config.hidden_act = "tanh";  // finite differences are inexact at ReLU's kink
    config.hidden_size = 4;
    config.intermediate_size = 3;
    CAPTURE(name_of(config));
    SmallSeq2Seq model(config);
    std::vector<Parameter*> parameters;
    for (const auto& parameter : model.parameters.all()) {
      const std::string& name = parameter->name;
      // One decoder layer in the middle, the parameters outside of layers, and the encoder's first layer.
      if (name.find("layer_") == std::string::npos || name.find("decoder/layer_1") != std::string::npos ||
          name.find("encoder/layer_0/self") != std::string::npos) {
        if (!name.ends_with("key/bias") && name.find("embeddings") == std::string::npos) {
          parameters.push_back(parameter.get());
        }
      }
    }
    check_gradients(
        [&](Tape& tape, const std::vector<Var>&) {
          for (Parameter* parameter : parameters) ++parameter->version;  // its values may have changed
          const SmallSeq2Seq::States states = model.run(tape, pairs);
          return std::vector{states.decoded};
        },
        {}, parameters, 5e-3, 4e-3f);
  }
}

TEST_CASE("the tied table of an encoder-decoder has the gradients of all its uses, and an own one its own", "[nn]") {
  const Pairs pairs({{3, 2}, {1, 3}});
  for (const bool shared : {true, false}) {
    Seq2SeqConfig config = small_seq2seq();
    config.share_embeddings = shared;
    SmallSeq2Seq model(config);
    for (const char* name : {"seq2seq/embeddings/tokens", "seq2seq/embeddings/source", "seq2seq/embeddings/target"}) {
      Parameter* const table = model.parameters.find(name);
      REQUIRE((table != nullptr) == (std::string(name).ends_with("tokens") == shared));
      if (table == nullptr) continue;
      CAPTURE(name);
      model.parameters.drop_gradients();
      const auto loss = [&](bool gradients) {
        Tape tape(gradients ? Recording::on : Recording::off);
        double sum = 0;
        {
          const Var states = model.run(tape, pairs).decoded;
          const VocabularyLayer output = model.decoder.output();
          const VocabularyResult result =
              gradients ? vocabulary_loss_with_gradients(states.value(), output, pairs.labels, 1, 0.1)
                        : vocabulary_loss(states.value(), output, pairs.labels, 0.1);
          for (const double of_token : result.smoothed) sum += of_token;
          if (gradients) states.gradient()->add(result.dx);
        }
        if (gradients) tape.backward();
        return sum;
      };
      loss(true);
      const Tensor gradient = table->grad.clone();
      double largest = 0;
      for (std::int64_t i = 0; i < gradient.size(); ++i)
        largest = std::max(largest, std::abs(static_cast<double>(gradient.data()[i])));
      for (std::int64_t i = 0; i < gradient.size(); i += 3) {
        const double numeric = numeric_derivative([&] { return loss(false); }, table->value.data()[i], 4e-3f);
        CHECK(std::abs(numeric - gradient.data()[i]) <= 5e-3 * largest);
      }
    }
  }
}

TEST_CASE("no decoder state depends on target tokens behind it", "[nn]") {
  SmallSeq2Seq model(small_seq2seq());
  Pairs pairs({{5, 20}});
  const std::vector<float> before = model.decoded(pairs);
  pairs.target.target_ids[13] = pairs.target.target_ids[13] == 5 ? 6 : 5;
  const std::vector<float> after = model.decoded(pairs);
  const std::ptrdiff_t same = 13 * model.encoder.config().hidden_size;
  CHECK(std::equal(before.begin(), before.begin() + same, after.begin()));
  CHECK(before != after);
}

TEST_CASE("an encoder-decoder has the same bits for any threads, neighbours and checkpointing", "[nn]") {
  const Pairs together({{4, 9}, {17, 3}, {2, 2}}), alone({{17, 3}});
  for (const Norm norm : {Norm::post_ln, Norm::admin, Norm::rezero}) {
    Seq2SeqConfig config = small_seq2seq();
    config.norm = norm;
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.inner_dropout_prob = 0.2;
    const auto gradients = [&](std::int64_t period) {
      config.grad_checkpointing_period = period;
      SmallSeq2Seq model(config);
      ForwardOptions options;
      options.training = true;
      options.seed = 17;
      Tape tape(Recording::on);
      {
        std::vector<Var> results{model.run(tape, together, options).decoded};
        seed_weighted_sum(results);
      }
      tape.backward();
      std::vector<float> all;
      for (const auto& parameter : model.parameters.all()) {
        all.insert(all.end(), parameter->grad.data(), parameter->grad.data() + parameter->size());
      }
      return all;
    };
    const std::vector<float> usual = gradients(0);
    CHECK(same_bits(usual, gradients(1)));
    CHECK(same_bits_for_any_thread_count([&] { return gradients(0); }));
    SmallSeq2Seq model(config);
    const std::vector<float> all = model.decoded(together), one = model.decoded(alone);
    const std::ptrdiff_t first = 9 * config.hidden_size;
    CHECK(same_bits(one, {all.begin() + first, all.begin() + first + 3 * config.hidden_size}));
  }
}

TEST_CASE("with one layer scores that are carried change nothing, and with ADMIN's numbers at 1 it is Post-LN",
          "[nn]") {
  const Pairs pairs({{5, 4}});
  Seq2SeqConfig config = small_seq2seq();
  config.num_hidden_layers = config.num_decoder_layers = 1;
  std::vector<std::vector<float>> states;
  for (const auto& [residual, mean] : {std::pair(false, false), {true, false}, {true, true}}) {
    config.use_residual_attention = residual;
    config.use_running_mean = mean;
    states.push_back(SmallSeq2Seq(config).decoded(pairs));
  }
  for (const auto& other : {states[1], states[2]}) {
    for (std::size_t i = 0; i < other.size(); ++i) CHECK(other[i] == Approx(states[0][i]).margin(2e-5));
  }
  config = small_seq2seq();
  SmallSeq2Seq post(config);
  config.norm = Norm::admin;
  SmallSeq2Seq admin(config);
  for (const auto& parameter : post.parameters.all()) {
    admin.parameters.at(parameter->name).value = parameter->value.clone();
  }
  for (Parameter* omega : admin_omegas(admin.parameters)) std::fill_n(omega->value.data(), omega->size(), 1.0f);
  CHECK(same_bits(post.decoded(pairs), admin.decoded(pairs)));
}

TEST_CASE("decoding token by token has the states of all tokens at once, whoever goes on", "[nn]") {
  bool of_first = true;
  for (const Seq2SeqConfig& config : seq2seq_variants()) {
    const std::int64_t longest = of_first ? 70 : 19;
    double worst = 0;
    of_first = false;
    CAPTURE(name_of(config));
    SmallSeq2Seq model(config);
    const std::int64_t H = config.hidden_size;
    const Pairs sources({{6, 1}, {1, 1}, {9, 1}});
    Tape tape(Recording::off);
    const Tensor encoded = model.encoder.forward(tape, sources.source, {}).long_states.value();
    IncrementalDecoder incremental(model.decoder, encoded, sources.source.long_offsets);
    // Sentence 0 has three hypotheses, which swap places; 1 ends after four steps; 2 begins with one hypothesis, which
    // becomes two.
    std::vector<std::vector<std::int32_t>> read;
    std::vector<std::int64_t> of;
    Tensor states;
    for (std::int64_t step = 0; step < longest; ++step) {
      std::vector<HypothesisStep> rows;
      std::vector<std::vector<std::int32_t>> now;
      const auto go_on = [&](std::int64_t sentence, std::int64_t parent) {
        const std::int32_t token = step == 0 ? 2 : Pairs::id(7 * step + 3 * std::ssize(rows));
        rows.push_back({sentence, parent, token});
        now.push_back(parent < 0 ? std::vector<std::int32_t>{} : read[static_cast<std::size_t>(parent)]);
        now.back().push_back(token);
      };
      const auto place = [&](std::int64_t sentence, std::int64_t which) -> std::int64_t {
        if (step == 0) return -1;
        const auto first = std::find(of.begin(), of.end(), sentence);
        const std::int64_t count = std::count(of.begin(), of.end(), sentence);
        return first - of.begin() + which % count;
      };
      for (std::int64_t i = 0; i < (step == 0 ? 1 : 3); ++i) go_on(0, place(0, i + step));
      if (step < 4) go_on(1, place(1, 0));
      for (std::int64_t i = 0; i < (step < 2 ? 1 : 2); ++i) go_on(2, place(2, i / 2));
      states = incremental.step(rows);
      read = now;
      of.clear();
      for (const HypothesisStep& row : rows) of.push_back(row.sentence);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::int64_t source = rows[i].sentence,
                           first = sources.source.long_offsets[static_cast<std::size_t>(source)],
                           end = sources.source.long_offsets[static_cast<std::size_t>(source) + 1];
        const std::vector<std::int64_t> offsets{0, end - first};
        DecoderInput input{offsets};
        input.target_ids = read[i];
        input.target_offsets = {0, std::ssize(read[i])};
        const Tensor memory = Tensor::from({encoded.data() + first * H, encoded.data() + end * H}, {end - first, H},
                                           Purpose::activations);
        const Tensor whole = model.decoder.forward(tape, Var(memory), input, {}).value();
        const Reals expected = reals_of(whole);
        const Reals last(expected.end() - H, expected.end());
        worst = std::max(worst, largest_difference(last, states.data() + static_cast<std::int64_t>(i) * H));
      }
    }
    CHECK(incremental.bytes() > 0);
    CHECK(worst == 0);  // the same bits
  }
}

TEST_CASE("incremental decoding refuses hypotheses that cannot be", "[nn]") {
  SmallSeq2Seq model(small_seq2seq());
  const Pairs sources({{6, 1}, {2, 1}});
  Tape tape(Recording::off);
  const Tensor encoded = model.encoder.forward(tape, sources.source, {}).long_states.value();
  IncrementalDecoder decoder(model.decoder, encoded, sources.source.long_offsets);
  const auto step = [&](std::vector<HypothesisStep> rows) { decoder.step(rows); };
  CHECK_THROWS_WITH(step({{2, -1, 2}}), "decoder: hypothesis 0: sentence: expected 0 … 1, got 2");
  CHECK_THROWS_WITH(step({{1, -1, 2}, {0, -1, 2}}), "decoder: hypothesis 1: sentence: expected 1 … 1, got 0");
  CHECK_THROWS_WITH(step({{0, 0, 2}}), "decoder: hypothesis 0: parent: expected -1 … -1, got 0");
  step({{0, -1, 2}, {1, -1, 2}});
  CHECK_THROWS_WITH(step({{0, 1, 4}}), "decoder: hypothesis 0: parent 1: expected one of sentence 0, got one of 1");
  CHECK_THROWS_WITH(step({{0, 0, 13}}), Contains("target_ids"));
  CHECK_THROWS_WITH(IncrementalDecoder(model.decoder, encoded, {0, 5}),
                    Contains("encoder_states: expected 5 rows by source_offsets, got"));
}

TEST_CASE("an encoder-decoder's initial values are those of the specification", "[nn]") {
  Seq2SeqConfig config;
  config.vocab_size = 2000;
  config.hidden_size = 128;
  config.num_hidden_layers = config.num_decoder_layers = 2;
  config.intermediate_size = 320;
  for (const Norm norm : {Norm::post_ln, Norm::deepnet}) {
    config.norm = norm;
    register_cpu_backend();
    ParameterSet parameters;
    const Seq2SeqEncoder encoder(config, parameters);
    const Seq2SeqDecoder decoder(config, parameters);
    parameters.initialize(3);
    const Parameter& table = parameters.at("seq2seq/embeddings/tokens");
    const auto deviation = [](const Parameter& parameter) {
      double squares = 0;
      for (const double x : reals_of(parameter.value)) squares += x * x;
      return std::sqrt(squares / static_cast<double>(parameter.size()));
    };
    const auto largest = [](const Parameter& parameter) {
      double most = 0;
      for (const double x : reals_of(parameter.value)) most = std::max(most, std::abs(x));
      return most;
    };
    CHECK(deviation(table) == Approx(1 / std::sqrt(128.0)).epsilon(0.01));
    for (std::int64_t j = 0; j < 128; ++j) CHECK(table.value.data()[Seq2SeqConfig::kPad * 128 + j] == 0);
    const double encoder_gain = 0.87 * std::pow(16.0 * 2, -1 / 16.0), decoder_gain = std::pow(24.0, -0.25);
    for (const auto& parameter : parameters.all()) {
      const std::string& name = parameter->name;
      CAPTURE(name);
      if (name.ends_with("gamma"))
        CHECK(reals_of(parameter->value) == Reals(static_cast<std::size_t>(parameter->size()), 1));
      if (name.ends_with("bias") || name.ends_with("beta")) CHECK(largest(*parameter) == 0);
      if (!name.ends_with("kernel")) continue;
      const double in = static_cast<double>(parameter->shape[0]), out = static_cast<double>(parameter->shape[1]);
      const bool of_query_or_key = name.find("query") != std::string::npos || name.find("key") != std::string::npos;
      if (norm == Norm::post_ln) {
        const bool fused = of_query_or_key || name.find("value") != std::string::npos;
        const double bound = std::sqrt(6 / (in + (fused ? 3 : 1) * out));
        CHECK(largest(*parameter) <= bound * (1 + 1e-6));
        CHECK(largest(*parameter) > bound * 0.99);
        CHECK(deviation(*parameter) == Approx(bound / std::sqrt(3.0)).epsilon(0.02));
      } else {
        const double gain = of_query_or_key                             ? 1
                            : name.find("decoder") != std::string::npos ? decoder_gain
                                                                        : encoder_gain;
        CHECK(deviation(*parameter) == Approx(gain * std::sqrt(2 / (in + out))).epsilon(0.02));
      }
    }
  }
}

TEST_CASE("an encoder-decoder has as many parameters as the specification counts", "[nn]") {
  const auto count = [](std::int64_t vocabulary, std::int64_t encoder_layers, std::int64_t decoder_layers, Norm norm) {
    Seq2SeqConfig config;
    config.vocab_size = vocabulary;
    config.num_hidden_layers = encoder_layers;
    config.num_decoder_layers = decoder_layers;
    config.norm = norm;
    ParameterSet parameters;
    const Seq2SeqEncoder encoder(config, parameters);
    const Seq2SeqDecoder decoder(config, parameters);
    return parameters.count();
  };
  const auto expected = [](std::int64_t V, std::int64_t e, std::int64_t d) {
    const std::int64_t h = 512, f = 2048, feed_forward = 2 * h * f + f + h;
    return V * h + e * (4 * (h * h + h) + feed_forward + 4 * h) + d * (8 * (h * h + h) + feed_forward + 6 * h);
  };
  CHECK(count(37000, 6, 6, Norm::post_ln) == expected(37000, 6, 6));
  CHECK(count(37000, 18, 18, Norm::post_ln) == expected(37000, 18, 18));
  CHECK(count(40000, 60, 12, Norm::admin) == expected(40000, 60, 12) + 512 * (60 * 2 + 12 * 3));
  CHECK(static_cast<double>(count(37000, 6, 6, Norm::post_ln)) == Approx(63.1e6).epsilon(1e-3));
}

TEST_CASE("ADMIN's profile follows its recursion, and folding its numbers changes no output", "[nn]") {
  Seq2SeqConfig config = small_seq2seq();
  config.norm = Norm::admin;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.inner_dropout_prob = 0.1;
  SmallSeq2Seq model(config);
  const Pairs pairs({{5, 6}, {9, 3}});
  ForwardOptions options;
  options.training = true;
  options.seed = 3;
  const std::vector<AdminBranch> profile =
      profile_admin(model.encoder, model.decoder, pairs.source, pairs.target, options);
  REQUIRE(profile.size() == 2 * 2 + 3 * 3);
  const std::vector<Parameter*> omegas = admin_omegas(model.parameters);
  for (std::size_t i = 0; i < profile.size(); ++i) {
    CHECK(profile[i].omega == omegas[i]);
    const bool first = i == 0 || i == 4;
    const double r = first ? 1 : std::sqrt(profile[i - 1].skip_variance + profile[i - 1].branch_variance);
    CHECK(profile[i].value == Approx(r).epsilon(1e-12));
  }
  const std::string text = admin_profile_text(profile);
  CHECK(text.starts_with("1 1\n2 "));
  CHECK_THAT(text, Contains("\n4 ") && Contains("\n1 1\n") && Contains("\n9 "));
  const std::vector<AdminBranch> again =
      profile_admin(model.encoder, model.decoder, pairs.source, pairs.target, options);
  for (std::size_t i = 0; i < profile.size(); ++i) CHECK(again[i].value == profile[i].value);
  options.seed = 4;
  CHECK(profile_admin(model.encoder, model.decoder, pairs.source, pairs.target, options)[1].value != profile[1].value);

  // Trained factors differ between columns, also in the first sub-layers.
  for (std::size_t i = 0; i < omegas.size(); ++i) {
    const Tensor moved = noise(omegas[i]->shape, 50 + i);
    for (std::int64_t j = 0; j < moved.size(); ++j) omegas[i]->value.data()[j] *= 1 + 0.3f * moved.data()[j];
  }
  const std::vector<float> states = model.decoded(pairs);
  config.norm = Norm::admin_folded;
  SmallSeq2Seq folded(config);
  fold_admin(model.parameters, folded.parameters);
  CHECK(admin_omegas(folded.parameters).size() == 2);
  const std::vector<float> after = folded.decoded(pairs);
  for (std::size_t i = 0; i < states.size(); ++i) CHECK(after[i] == Approx(states[i]).margin(5e-6).epsilon(0));
  omegas[3]->value.data()[2] = 0;
  CHECK_THROWS_WITH(fold_admin(model.parameters, folded.parameters),
                    "admin: " + omegas[3]->name + ": expected numbers other than 0 to fold, got 0");
  CHECK_THROWS_WITH(fold_admin(folded.parameters, model.parameters), Contains("the model to fold into has"));
  CHECK_THROWS_WITH(profile_admin(folded.encoder, folded.decoder, pairs.source, pairs.target, {}),
                    "admin: a profile: expected a model of norm admin");
}

TEST_CASE("configurations of encoder-decoders say what is wrong with them, and are read as they are written", "[nn]") {
  const auto refused = [](const std::function<void(Seq2SeqConfig&)>& change) {
    Seq2SeqConfig config = small_seq2seq();
    change(config);
    std::string message = "accepted";
    try {
      config.validate();
    } catch (const UsageError& error) {
      message = error.what();
    }
    return message;
  };
  CHECK_THAT(refused([](auto& c) { c.num_attention_heads = 3; }), Contains("hidden_size: expected a multiple of"));
  CHECK_THAT(refused([](auto& c) { c.num_attention_heads = c.att_size_per_head.emplace(1 << 24); }),
             Contains("num_attention_heads * att_size_per_head: expected at most 16777216, got 281474976710656"));
  CHECK_THAT(refused([](auto& c) { c.vocab_size = 4; }), Contains("expected more than the 4 special tokens, got 4"));
  CHECK_THAT(refused([](auto& c) { c.target_vocab_size = 7; }), Contains("target_vocab_size: expected 0 with"));
  CHECK_THAT(refused([](auto& c) { c.num_decoder_layers = 0; }), Contains("num_decoder_layers"));
  CHECK_THAT(refused([](auto& c) { c.residual_attention_types = {"self"}; }), Contains("residual_attention_types"));
  for (const Seq2SeqConfig& config : seq2seq_variants()) {
    Json json = config.to_json();
    CHECK(json.at("kind") == "seq2seq");
    json.erase("kind");
    CHECK(seq2seq_config_from_json(json, "test", UnknownKeys::refuse).to_json() == config.to_json());
  }
  CHECK_THROWS_WITH(seq2seq_config_from_json({{"num_decoder_layer", 2}}, "test", UnknownKeys::refuse),
                    Contains("did you mean num_decoder_layers?"));
}

TEST_CASE("an encoder of sentences takes odd widths with a warning, and neither labels nor memory", "[nn]") {
  const TemporaryFolder folder;
  log::also_to_file(folder / "log.txt");
  Seq2SeqConfig odd = small_seq2seq();
  odd.hidden_size = 7;
  odd.att_size_per_head = 4;
  SmallSeq2Seq model(odd);
  const auto states = [&](const std::function<void(EncoderInput&)>& change) {
    Pairs pairs({{5, 4}, {3, 2}});
    change(pairs.source);
    Tape tape(Recording::off);
    return model.encoder.forward(tape, pairs.source, {}).long_states.value();
  };
  CHECK(states([](auto&) {}).cols() == 7);
  CHECK_THAT(read_file(folder / "log.txt"),
             Contains("seq2seq: a width of H=7 leaves a last column of zeros in the sinusoids"));
  CHECK_THROWS_WITH(states([](auto& in) { in.labels.l2l = Buffer<std::uint8_t>(8, Purpose::labels); }),
                    Contains("encoder: labels.l2l: expected none"));
  CHECK_THROWS_WITH(states([](auto& in) {
                      in.memory.offsets = {0, 2, 3};
                    }),
                    "encoder: memory: expected none, since an encoder-decoder keeps none, got 3 rows");
}

TEST_CASE("a decoder says what disagrees in its input", "[nn]") {
  SmallSeq2Seq model(small_seq2seq());
  const Pairs pairs({{5, 4}, {3, 2}});
  Tape tape(Recording::off);
  const Var encoded = model.encoder.forward(tape, pairs.source, {}).long_states;
  const auto run = [&](const std::function<void(DecoderInput&)>& change) {
    DecoderInput input = pairs.target;
    change(input);
    model.decoder.forward(tape, encoded, input, {});
  };
  CHECK_THROWS_WITH(run([](auto& in) { in.target_offsets = {0, 6}; }), Contains("target_offsets: expected [3] like"));
  CHECK_THROWS_WITH(run([](auto& in) { in.target_ids.pop_back(); }), Contains("target_ids: expected 6 by"));
  CHECK_THROWS_WITH(run([](auto& in) { in.target_ids[1] = 99; }), Contains("target_ids: example 0, position 1"));
  CHECK_THROWS_WITH(run([](auto& in) { in.sample_ordinals = {1}; }), Contains("sample_ordinals: expected 2, got 1"));
  ForwardOptions training;
  training.training = true;
  CHECK_THROWS_WITH(model.decoder.forward(tape, encoded, pairs.target, training), Contains("a tape that records"));
}

}  // namespace
}  // namespace etc::test
