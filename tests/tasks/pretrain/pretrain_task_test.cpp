// The objectives as one task: losses of whole batches, their gradients, and what must not change them.
#include <cmath>
#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/random.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/encoder.h"
#include "tasks/feed/features.h"
#include "tasks/train/batch_rows.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/tasks/pretrain/examples.h"

using namespace etc;
using namespace etc::test;

namespace {

using Loaded = std::vector<data::LoadedExample>;

// A model with fresh weights.
struct Model {
  Model(const ModelConfig& model_config, const Json& keys)
      : config(model_config), task(pretrain_task(keys, *config)), encoder(config->make_encoder(parameters)) {
    open_device("cpu");
    task->add_parameters(parameters);
    parameters.initialize(3);
  }

  std::vector<double> counts(const Loaded& examples) const {
    std::vector<double> all(task->loss_terms().size());
    for (const data::LoadedExample& example : examples) task->count(example, all);
    return all;
  }

  // The loss of the whole batch as the trainer computes it, in these micro-batches; adds to the parameters' gradients.
  double train(const std::vector<Loaded>& micro_batches, const std::vector<double>& counts, std::uint64_t seed = 1) {
    double loss = 0;
    for (const Loaded& examples : micro_batches) {
      EncoderInput input = task->feed(examples, "test");
      Tape tape(Recording::on);
      ForwardOptions options;
      options.training = true;
      options.seed = seed;
      HeadOutput outputs = task->head(tape, examples, encoder->forward(tape, input, options), input, options);
      loss += task->loss(tape, examples, input, outputs, counts);
      tape.backward();
    }
    return loss;
  }
  double train(const Loaded& examples) { return train({examples}, counts(examples)); }

  HeadOutput outputs(const Loaded& examples) {
    EncoderInput input = task->feed(examples, "test");
    Tape tape(Recording::off);
    return task->head(tape, examples, encoder->forward(tape, input, {}), input, {});
  }

  Metrics evaluate(const Loaded& examples) {
    const auto predictions = task->start_predictions({});
    predictions->add(examples, task->feed(examples, "test"), outputs(examples));
    return predictions->metrics();
  }

  std::map<std::string, std::vector<float>> gradients() {
    std::map<std::string, std::vector<float>> all;
    for (const auto& parameter : parameters.all()) {
      if (parameter->grad) all[parameter->name] = {parameter->grad.data(), parameter->grad.data() + parameter->size()};
    }
    parameters.drop_gradients();
    return all;
  }

  ModelConfig config;
  ParameterSet parameters;
  std::unique_ptr<Task> task;
  std::unique_ptr<Encoder> encoder;
};

Loaded examples_of(data::LoadedExample (*make)(std::int64_t), std::int64_t count) {
  Loaded examples;
  for (std::int64_t i = 0; i < count; ++i) examples.push_back(make(i));
  return examples;
}

double metric(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  FAIL("no metric " << name);
  return 0;
}

void check_near(const std::map<std::string, std::vector<float>>& got,
                const std::map<std::string, std::vector<float>>& expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, gradient] : expected) {
    CHECK(near_all(name, got.at(name), {gradient.begin(), gradient.end()}, 1e-6, 1e-4));
  }
}

std::vector<float> numbers_of(const Var& x) {
  return {x.value().data(), x.value().data() + x.value().size()};
}

}  // namespace

TEST_CASE("an untrained model is as good as chance in every objective", "[tasks][pretrain]") {
  Model pairs(pretrain_dense(), {{"objective", "mlm_nsp"}});
  const Metrics of_pairs = pairs.evaluate(examples_of(pair_example, 40));
  CHECK(of_pairs.front().first == "masked_lm_accuracy");
  CHECK(metric(of_pairs, "masked_lm_loss") == Approx(std::log(64.0)).margin(0.1));
  CHECK(metric(of_pairs, "next_sentence_loss") == Approx(std::log(2.0)).margin(0.05));
  Model texts(pretrain_etc(), {{"objective", "mlm_cpc"}, {"cpc_projection", false}});
  // Final states are layer-normalised: dot products of unlike states are near 0 and of like ones near H, and are
  // divided by sqrt(H) = 4. A high temperature brings the logits close to 0.
  Model warm(pretrain_etc(), {{"objective", "mlm_cpc"}, {"cpc_temperature", 1e4}});
  const Metrics of_texts = warm.evaluate(examples_of(sentences_example, 12));
  CHECK(metric(of_texts, "masked_lm_loss") == Approx(std::log(64.0)).margin(0.1));
  CHECK(metric(of_texts, "cpc_loss") == Approx(std::log(12.0)).margin(0.01));
  CHECK(metric(of_texts, "cpc_sentences") == 12);
  CHECK(metric(of_texts, "cpc_choices") == 12);
  CHECK(metric(texts.evaluate(examples_of(sentences_example, 12)), "cpc_loss") > 0.1);
}

TEST_CASE("the loss does not depend on the order of a batch, nor on how it is cut", "[tasks][pretrain]") {
  for (const bool dense : {true, false}) {
    CAPTURE(dense);
    const ModelConfig config = dense ? ModelConfig(pretrain_dense()) : ModelConfig(pretrain_etc());
    Model model(*config, {{"objective", dense ? "mlm_nsp" : "mlm"}});
    const Loaded all = examples_of(dense ? pair_example : sentences_example, 8);
    const std::vector<double> counts = model.counts(all);
    const double loss = model.train({all}, counts);
    const auto gradients = model.gradients();
    CHECK(model.train({{all.rbegin(), all.rend()}}, counts) == Approx(loss).epsilon(1e-6));
    check_near(model.gradients(), gradients);
    CHECK(model.train({{all.begin(), all.begin() + 3}, {all.begin() + 3, all.end()}}, counts) ==
          Approx(loss).epsilon(1e-6));
    check_near(model.gradients(), gradients);
  }
}

TEST_CASE("hidden sentences are compared over the whole batch, however it is cut", "[tasks][pretrain]") {
  for (const char* similarity : {"scaled_dot", "dot", "cosine"}) {
    for (const bool stop : {false, true}) {
      CAPTURE(similarity, stop);
      Model model(pretrain_etc(),
                  {{"objective", "mlm_cpc"}, {"cpc_similarity", similarity}, {"cpc_stop_target_gradient", stop}});
      const Loaded all = examples_of(sentences_example, 9);
      const std::vector<double> counts = model.counts(all);
      const double loss = model.train({all}, counts);
      const auto gradients = model.gradients();
      data::LoadedBatch batch;
      batch.micro_batches = {{all.begin(), all.begin() + 2}, {all.begin() + 2, all.begin() + 8}, {all[8]}};
      batch.all_micro_batches = 3;
      const auto compare = [&] {
        compare_batch(one_process(), *model.task, batch, counts, [&](Examples examples) {
          return model.outputs({examples.begin(), examples.end()});
        });
      };
      compare();
      CHECK(model.train(batch.micro_batches, counts) == Approx(loss).epsilon(1e-6));
      check_near(model.gradients(), gradients);
      // A batch of one micro-batch ends the comparison with the others.
      batch.all_micro_batches = 1;
      compare();
      CHECK(model.train({all}, counts) == loss);
      CHECK(std::abs(model.train(batch.micro_batches, counts) - loss) > 1e-3);
    }
  }
}

TEST_CASE("the loss of an objective is the weighted sum of its parts' means", "[tasks][pretrain]") {
  const Loaded pairs = examples_of(pair_example, 6);
  Model both(pretrain_dense(), {{"objective", "mlm_nsp"}});
  const Metrics of_pairs = both.evaluate(pairs);
  const double masked = metric(of_pairs, "masked_lm_loss") * 12 / (12 + 1e-5);
  CHECK(both.counts(pairs) == std::vector<double>{12, 6});
  CHECK(both.train(pairs) == Approx(masked + metric(of_pairs, "next_sentence_loss")).epsilon(1e-6));
  Model without(pretrain_dense(), {{"objective", "mlm_nsp"}, {"use_nsp", false}});
  CHECK(without.task->loss_terms().size() == 1);
  CHECK(without.parameters.find("cls/seq_relationship/output_weights") == nullptr);

  const Loaded texts = examples_of(sentences_example, 6);
  Model etc(pretrain_etc(), {{"objective", "mlm_cpc"}});
  const Metrics of_texts = etc.evaluate(texts);
  CHECK(etc.train(texts) ==
        Approx(0.8 * metric(of_texts, "masked_lm_loss") * 6 / (6 + 1e-5) + 0.2 * metric(of_texts, "cpc_loss"))
            .epsilon(1e-5));
}

TEST_CASE("without a masked piece the head of masked pieces learns nothing and the loss is 0", "[tasks][pretrain]") {
  Model model(pretrain_etc(), {{"objective", "mlm_cpc"}, {"w_cpc", 0.0}});
  Loaded examples = examples_of(sentences_example, 3);
  for (data::LoadedExample& example : examples) {
    example.features["masked_positions"] = example.features["masked_input_ids"] = std::vector<std::int64_t>();
  }
  CHECK(model.train(examples) == 0);
  for (const auto& [name, gradient] : model.gradients()) {
    CAPTURE(name);
    for (const float number : gradient) CHECK(number == 0);
  }
}

TEST_CASE("what a hidden sentence says changes its own example alone", "[tasks][pretrain]") {
  Model model(pretrain_etc(), {{"objective", "mlm_cpc"}});
  Loaded examples = examples_of(sentences_example, 3);
  const HeadOutput before = model.outputs(examples);
  const std::int64_t hidden = feed::numbers(examples[1].features, "cpc_sentences").at(0);
  std::int64_t position = 1;
  for (std::int64_t s = 0; s < hidden; ++s) {
    position += feed::numbers(examples[1].features, "sentence_lengths").at(static_cast<std::size_t>(s));
  }
  auto& ids = std::get<std::vector<std::int64_t>>(examples[1].features["long_token_ids"]);
  ids[static_cast<std::size_t>(position)] = 6 + (ids[static_cast<std::size_t>(position)] - 5) % 50;
  const HeadOutput after = model.outputs(examples);
  for (const std::size_t part : {0, 1}) CHECK(same_bits(numbers_of(before[part]), numbers_of(after[part])));
  const auto t_before = numbers_of(before[2]), t_after = numbers_of(after[2]);  // [3, 16]
  CHECK(same_bits({t_before.begin(), t_before.begin() + 16}, {t_after.begin(), t_after.begin() + 16}));
  CHECK(!same_bits({t_before.begin() + 16, t_before.begin() + 32}, {t_after.begin() + 16, t_after.begin() + 32}));
  CHECK(same_bits({t_before.begin() + 32, t_before.end()}, {t_after.begin() + 32, t_after.end()}));
}

TEST_CASE("a sentence alone has the state of its global token where nothing else is seen", "[tasks][pretrain]") {
  // One document of one sentence behind [CLS], with a window that does not reach [CLS] and no attention from long to
  // global tokens but its own: the rest of the document is not there.
  EtcConfig config = pretrain_etc();
  config.use_hard_l2g_mask = true;
  Model model(config, {{"objective", "mlm_cpc"}});
  Loaded examples = examples_of(sentences_example, 1);
  const HeadOutput outputs = model.outputs(examples);  // [2] target [1, 16]
  const data::Example& example = examples[0].features;
  const auto& lengths = feed::numbers(example, "sentence_lengths");
  const std::int64_t hidden = feed::numbers(example, "cpc_sentences").at(0);
  std::int64_t begin = 1;
  for (std::int64_t s = 0; s < hidden; ++s) begin += lengths[static_cast<std::size_t>(s)];
  const std::int64_t count = lengths[static_cast<std::size_t>(hidden)];
  // The whole text, unmasked. The sentence has its own segment in the attention structure, so it and the other
  // sentences do not see each other.
  const auto& ids = feed::numbers(example, "long_token_ids");
  EncoderInput input;
  sparse::AttentionStructure structure;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const bool own = at >= begin && at < begin + count;
    input.token_ids.push_back(static_cast<std::int32_t>(ids[i]));
    structure.long_segments.push_back(own ? 1 : 0);
    structure.sentence_ids.push_back(own ? static_cast<std::int32_t>(hidden) : -1);
  }
  structure.long_sides = structure.long_segments;
  for (std::int64_t g = 0; g < std::ssize(lengths); ++g) {
    input.global_token_ids.push_back(1);
    structure.global_segments.push_back(g == hidden ? 1 : 0);
  }
  structure.global_sides = structure.global_segments;
  input.long_offsets.push_back(std::ssize(input.token_ids));
  input.global_offsets.push_back(std::ssize(input.global_token_ids));
  input.sample_ordinals = {0};
  input.labels = config.labels({structure});
  Tape tape(Recording::off);
  const EncoderStates states = model.encoder->forward(tape, input, {});
  const float* expected = states.global_states.value().data() + hidden * 16;
  CHECK(near_all("target", numbers_of(outputs[2]), {expected, expected + 16}, 1e-5));
}

TEST_CASE("learning through the sentences alone can be switched off", "[tasks][pretrain]") {
  const Loaded examples = examples_of(sentences_example, 4);
  Model open(pretrain_etc(), {{"objective", "mlm_cpc"}, {"w_mlm", 0.0}});
  Model stopped(pretrain_etc(), {{"objective", "mlm_cpc"}, {"w_mlm", 0.0}, {"cpc_stop_target_gradient", true}});
  CHECK(open.train(examples) == stopped.train(examples));
  const auto all = open.gradients(), part = stopped.gradients();
  CHECK(same_bits(all.at("cls/cpc/projection/kernel"), part.at("cls/cpc/projection/kernel")));
  CHECK(!same_bits(all.at("etc_document_bert/token_emb_lookup/embedding_table"),
                   part.at("etc_document_bert/token_emb_lookup/embedding_table")));
}

TEST_CASE("gradients have the same bits for any number of threads and with checkpointed layers", "[tasks][pretrain]") {
  for (const bool residual : {false, true}) {
    CAPTURE(residual);
    EtcConfig config = pretrain_etc();
    config.use_residual_attention = residual;
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.1;
    EtcConfig checkpointed = config;
    checkpointed.grad_checkpointing_period = 1;
    const Loaded examples = examples_of(sentences_example, 5);
    std::map<std::string, std::vector<float>> expected;
    for (const int threads : {1, 2, 4}) {
      for (const EtcConfig& one : {config, checkpointed}) {
        set_thread_count(threads);
        Model model(one, {{"objective", "mlm_cpc"}});
        model.train(examples);
        auto gradients = model.gradients();
        if (expected.empty()) expected = gradients;
        for (const auto& [name, gradient] : expected) {
          CAPTURE(name, threads);
          CHECK(same_bits(gradients.at(name), gradient));
        }
      }
    }
    set_thread_count(2);
  }
}

TEST_CASE("the tied table has the gradients of its lookup and of the output layer", "[tasks][pretrain]") {
  Model model(pretrain_dense(), {{"objective", "mlm"}});
  const Loaded examples = examples_of(pair_example, 3);
  const std::vector<double> counts = model.counts(examples);
  model.train({examples}, counts);
  const auto gradient = model.gradients().at("bert/embeddings/word_embeddings");
  Parameter& table = model.parameters.at("bert/embeddings/word_embeddings");
  // Central differences of the loss for a few elements of the table: rows that are read, predicted, or neither.
  for (const std::int64_t row : {3, 8, 20, 40}) {
    for (const std::int64_t column : {0, 7}) {
      float& x = table.value.data()[row * 16 + column];
      const float old = x;
      x = old + 1e-2f;
      ++table.version;
      const double above = model.train({examples}, counts);
      x = old - 1e-2f;
      const double below = model.train({examples}, counts);
      x = old;
      model.parameters.drop_gradients();
      CHECK(gradient[static_cast<std::size_t>(row * 16 + column)] == Approx((above - below) / 2e-2).margin(2e-3));
    }
  }
}

TEST_CASE("damaged examples are trained on or refused, never worse", "[tasks][pretrain]") {
  const std::int64_t values[] = {-1, 0, 1, 2, 5, 63, 64, 1 << 20, -(1 << 20)};
  int refused = 0, taken = 0;
  for (std::uint32_t i = 0; i < 600; ++i) {
    const bool etc = i % 2 == 0;
    data::LoadedExample example = etc ? sentences_example(i) : pair_example(i);
    if (i % 3 == 0) example = without_masks(example);
    const Philox4 draw = philox({i, 0, 0, 0}, 99);
    auto feature = std::next(example.features.begin(), draw[0] % example.features.size());
    const std::int64_t value = values[draw[1] % std::size(values)];
    if (auto* list = std::get_if<std::vector<std::int64_t>>(&feature->second)) {
      if (draw[2] % 3 == 0 && !list->empty()) {
        list->pop_back();
      } else if (draw[2] % 3 == 1 || list->empty()) {
        list->push_back(value);
      } else {
        (*list)[draw[3] % list->size()] = value;
      }
    } else if (auto* number = std::get_if<std::int64_t>(&feature->second)) {
      *number = value;
    }
    CAPTURE(i, feature->first, value);
    Model model(etc ? ModelConfig(pretrain_etc()) : ModelConfig(pretrain_dense()),
                {{"objective", etc ? "mlm_cpc" : "mlm_nsp"}});
    try {
      const double loss = model.train({example});
      CHECK(std::isfinite(loss));
      ++taken;
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
  CHECK(taken > 50);
}
