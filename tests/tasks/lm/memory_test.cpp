// A language model that reads texts segment by segment: the numbers equal those of one pass; gradients, threads,
// carried memory.
#include <cmath>

#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/blocks/forward_context.h"
#include "tasks/train/carried_memory.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/text_rounds.h"
#include "tests/support/worst.h"
#include "tests/tasks/lm/lm_scene.h"

namespace etc::test {
namespace {

using Catch::Contains;

const std::vector<std::string> kTexts = {"abcadd\nefabcabeddcabafebcaddcbeafc\nbdeafaabce\ncdafa", "fedcbaabcdef",
                                         "eeabdeabdeabcfc"};

// The result of an evaluation: its metrics, and log2 p of every label in the order of the texts.
struct Evaluation {
  std::map<std::string, double> metrics;
  std::vector<double> log2_p;
};
Evaluation evaluate(const LmScene& scene, SmallLm& lm, const std::string& file,
                    std::int64_t tokens = kEvaluationTokens) {
  const TaskModel& model = lm.model;
  PredictionRequest request;
  request.output = scene.path("p.jsonl");
  const auto predictions = model.task->start_predictions(request);
  const DatasetPass pass{open_dataset({scene.path(file)}, model.task->schema(), {}), file, "test", tokens};
  REQUIRE(predict_dataset(lm.model, pass, predictions.get()));
  predictions->finish();
  Evaluation result;
  for (const auto& [name, value] : predictions->metrics()) result.metrics[name] = value;
  std::istringstream lines(read_file(request.output));
  for (std::string line; std::getline(lines, line);) {
    const Json segment = parse_json(line, "p");
    for (const Json& p : segment.at("log2_p")) result.log2_p.push_back(p);
  }
  return result;
}

double largest_difference(const Evaluation& a, const Evaluation& b) {
  REQUIRE(a.log2_p.size() == b.log2_p.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.log2_p.size(); ++i) keep_worst(largest, std::fabs(a.log2_p[i] - b.log2_p[i]));
  return largest;
}

TEST_CASE("segments with a memory as long as the context give the numbers of one pass", "[lm]") {
  const LmScene scene;
  scene.prepare("whole.h5", *scene.preparation(80), kTexts);
  scene.prepare("cut.h5", *scene.preparation(7), kTexts);
  SmallLm with(small_lm(80)), without(small_lm(0)), little(small_lm(3));
  const Evaluation whole = evaluate(scene, without, "whole.h5"), cut = evaluate(scene, with, "cut.h5");
  REQUIRE(whole.log2_p.size() == kTexts[0].size() + kTexts[1].size() + kTexts[2].size() + 3);
  // Both runs sum the same fp32 numbers in different blocks, so they differ by a few units in the last place of logits
  // below 16.
  CHECK(largest_difference(whole, cut) < 1e-4);
  for (const auto& [name, value] : whole.metrics) CHECK(cut.metrics.at(name) == Approx(value).epsilon(1e-6));
  CHECK(largest_difference(whole, evaluate(scene, with, "whole.h5")) == 0);
  // A shorter memory gives different numbers, and no memory different ones again.
  CHECK(largest_difference(whole, evaluate(scene, little, "cut.h5")) > 1e-2);
  CHECK(largest_difference(evaluate(scene, little, "cut.h5"), evaluate(scene, without, "cut.h5")) > 1e-2);
}

TEST_CASE("texts are evaluated side by side with the bits of one segment after the other, on any threads", "[lm]") {
  const LmScene scene;
  scene.prepare("cut.h5", *scene.preparation(7), kTexts);
  const std::vector<data::LoadedExample> all = examples_of(scene.path("cut.h5"));  // 8, 2 and 3 segments
  SmallLm lm(small_lm(9));
  const std::vector<std::vector<std::size_t>> rounds{{0, 8}, {1, 9}, {2}, {3}, {4}, {5, 10}, {6, 11}, {7, 12}};
  CHECK(text_rounds(*lm.model.task, all) == rounds);
  // The first text may continue earlier examples, so it starts in the first round; the last text may continue after
  // these, so it ends in the last round; which of them is longer does not matter.
  const std::vector<std::vector<std::size_t>> cut{{0}, {1}, {2, 3}};
  CHECK(text_rounds(*lm.model.task, Examples(all).subspan(5, 4)) == cut);
  const Evaluation single = evaluate(scene, lm, "cut.h5", 1);  // a segment at a time
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    for (const std::int64_t tokens : {16, 40, 60, 90, 16384}) {  // groups that end within texts
      CAPTURE(threads, tokens);
      const Evaluation together = evaluate(scene, lm, "cut.h5", tokens);
      CHECK(together.log2_p == single.log2_p);
      CHECK(together.metrics == single.metrics);
    }
  }
  set_thread_count(1);
}

TEST_CASE("with one layer, segments and memory are one pass that sees the same windows", "[lm]") {
  // relative-positions 14, invariant 6: every query sees itself and the memory_length keys before it.
  const LmScene scene;
  scene.prepare("whole.h5", *scene.preparation(80), kTexts);
  scene.prepare("cut.h5", *scene.preparation(5), kTexts);
  DenseConfig config = small_lm(6, 1), one_pass = small_lm(0, 1);
  config.local_radius = one_pass.local_radius = 6;
  SmallLm cut(config), whole(one_pass);
  CHECK(largest_difference(evaluate(scene, cut, "cut.h5"), evaluate(scene, whole, "whole.h5")) < 1e-4);
}

TEST_CASE("bits per character count every label's bits and the characters of the text", "[lm]") {
  const LmScene scene;
  scene.prepare("cut.h5", *scene.preparation(7), kTexts);
  SmallLm lm(small_lm(20));
  const Evaluation found = evaluate(scene, lm, "cut.h5");
  double bits = 0;
  for (const double p : found.log2_p) bits -= p;
  const auto labels = static_cast<double>(found.log2_p.size());  // three of them are ends of texts
  CHECK(found.metrics.at("bits_per_character") == Approx(bits / (labels - 3)).epsilon(1e-9));
  CHECK(found.metrics.at("log2_likelihood") == Approx(-bits / labels).epsilon(1e-9));
  CHECK(found.metrics.at("perplexity") == Approx(std::exp2(bits / labels)).epsilon(1e-9));
}

// Loss and gradients of the second segments of two texts, with the memory of their first segments.
struct SecondSegments {
  SmallLm lm;
  CarriedMemory memory;
  std::vector<data::LoadedExample> first, second;

  SecondSegments(const std::vector<data::LoadedExample>& all, const DenseConfig& config) : lm(config) {
    for (const data::LoadedExample& example : all) {
      const auto segment = std::get<std::int64_t>(example.features.at("segment"));
      if (segment == 0) first.push_back(example);
      if (segment == 1) second.push_back(example);
    }
    memory.serve(lm.model);
    Tape tape(Recording::off);
    run(tape, first);
    memory.commit();
  }
  double run(Tape& tape, Examples examples) {
    EncoderInput input = lm.model.task->feed(examples, "test");
    HeadOutput states = lm.model.forward(tape, examples, input, {});
    return lm.model.task->loss(tape, examples, input, states, std::vector<double>{1});
  }
  double loss() {
    Tape tape(Recording::off);
    return run(tape, second);
  }
  void backward() {
    lm.model.parameters.drop_gradients();
    Tape tape(Recording::on);
    run(tape, second);
    tape.backward();
  }
};

TEST_CASE("gradients of a segment equal central differences in which the memory stays", "[lm]") {
  const LmScene scene;
  scene.prepare("cut.h5", *scene.preparation(7), kTexts);
  DenseConfig config = small_lm(9);
  config.norm = DenseConfig::Norm::pre_ln;  // no layer norm behind the output layer's input makes small gradients
  SecondSegments two(examples_of(scene.path("cut.h5")), config);
  two.backward();
  for (const auto& parameter : two.lm.model.parameters.all()) {
    if (!parameter->grad) continue;
    CAPTURE(parameter->name);
    double largest = 0;
    for (std::int64_t i = 0; i < parameter->size(); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(parameter->grad.data()[i])));
    }
    for (std::int64_t i = 0; i < parameter->size(); i += 1 + parameter->size() / 3) {
      float& value = parameter->value.data()[i];
      const float before = value, step = 1e-2f;
      const auto at = [&](float x) {
        value = x;
        ++parameter->version;
        return two.loss();
      };
      const double numeric = (at(before + step) - at(before - step)) / (2.0 * static_cast<double>(step));
      at(before);
      CHECK(std::fabs(numeric - static_cast<double>(parameter->grad.data()[i])) <= 2e-2 * largest + 4e-3);
    }
  }
}

TEST_CASE("loss and gradients have the same bits for any number of threads and beside any stream", "[lm]") {
  const LmScene scene;
  scene.prepare("cut.h5", *scene.preparation(7), kTexts);
  const std::vector<data::LoadedExample> examples = examples_of(scene.path("cut.h5"));
  std::vector<std::vector<float>> gradients;
  std::vector<double> losses;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    SecondSegments two(examples, small_lm(9));
    losses.push_back(two.loss());
    two.backward();
    std::vector<float>& all = gradients.emplace_back();
    for (const auto& parameter : two.lm.model.parameters.all()) {
      if (parameter->grad) all.insert(all.end(), parameter->grad.data(), parameter->grad.data() + parameter->size());
    }
  }
  CHECK(losses[1] == losses[0]);
  CHECK(gradients[1] == gradients[0]);
  CHECK(gradients[2] == gradients[0]);
  set_thread_count(1);
  // Each stream computed alone contributes the same loss.
  SecondSegments two(examples, small_lm(9));
  double sum = 0;
  for (const data::LoadedExample& example : two.second) {
    Tape tape(Recording::off);
    sum += two.run(tape, {&example, 1});
  }
  CHECK(sum == Approx(two.loss()).epsilon(1e-12));
}

TEST_CASE("memory is given to what goes on in the same epoch, after the step is done", "[lm]") {
  const LmScene scene;
  scene.prepare("cut.h5", *scene.preparation(7), kTexts);
  SecondSegments two(examples_of(scene.path("cut.h5")), small_lm(9));
  const Task& task = *two.lm.model.task;
  const auto rows = [&](Examples examples) {
    EncoderInput input = task.feed(examples, "test");
    two.memory.give(task, examples, input);
    return input.memory.offsets;
  };
  const std::vector<std::int64_t> both = {0, 7, 14, 21};
  CHECK(rows(two.second) == both);
  CHECK(rows(two.first).empty());  // these segments begin texts and have no memory
  std::vector<data::LoadedExample> later = two.second;
  later[0].epoch = 1;
  CHECK(rows(later) == std::vector<std::int64_t>{0, 0, 7, 14});
  two.loss();  // a step that is not committed: the same numbers again
  CHECK(rows(two.second) == both);
  const double before = two.loss();
  // The tensors saved in a checkpoint restore the same memory.
  CarriedMemory read;
  read.set_tensors(two.memory.tensors(), "state");
  CHECK(two.memory.tensors().size() == 6);  // three streams, two layers
  read.serve(two.lm.model);
  CHECK(two.loss() == before);
  CarriedMemory none;
  none.serve(two.lm.model);
  CHECK(two.loss() != before);
  two.memory.serve(two.lm.model);
  two.loss();
  two.memory.commit();
  CHECK(rows(two.second).empty());

  const Tensor matrix = Tensor::zeros({2, 16}, Purpose::activations);
  for (const std::string name : {"memory/1/2", "memory/1/2/3/4", "memory/a/1/1", "memory/1/2/", "adam_m"}) {
    CHECK_THROWS_WITH(read.set_tensors({{name, matrix}}, "state"), Contains("state: " + name + ": expected memory/"));
  }
  const Tensor longer = Tensor::zeros({3, 16}, Purpose::activations),
               wider = Tensor::zeros({3, 8}, Purpose::activations);
  const auto refuses = [&](const std::map<std::string, Tensor>& tensors, const std::string& message) {
    CHECK_THROWS_WITH(read.set_tensors(tensors, "state"), Contains("state: memory/0/") && Contains(message));
  };
  refuses({{"memory/0/1/0", matrix}, {"memory/0/1/1", longer}}, "expected equal rows of all layers");
  refuses({{"memory/0/1/0", matrix}, {"memory/0/1/2", matrix}}, "expected equal rows of all layers");
  refuses({{"memory/0/1/0", matrix}, {"memory/0/2/0", wider}}, "expected layers as in the other streams");
  read.set_tensors({{"memory/0/1/0", matrix}, {"memory/0/2/0", longer}}, "state");
}

TEST_CASE("what a language model cannot be is refused", "[lm]") {
  const auto refuses = [](const DenseConfig& config, const std::string& message) {
    CHECK_THROWS_WITH(SmallLm(config), Contains(message));
  };
  DenseConfig both = small_lm(0), narrow = small_lm(0);
  both.causal = false;
  narrow.embedding_size = 8;
  refuses(both, "model.causal: expected true");
  refuses(narrow, "model.embedding_size: expected hidden_size, 16");
  CHECK_THROWS_WITH(make_task(default_config("lm").at("task"), *ModelConfig()), Contains("expected dense, got etc"));
  SmallLm lm(small_lm(4));
  CarriedMemory memory;
  SmallLm without(small_lm(0));
  memory.serve(without.model);
  CHECK(without.model.memory == nullptr);

  const LmScene scene;
  scene.prepare("d.h5", *scene.preparation(7), {"abc"});
  std::vector<data::LoadedExample> examples = examples_of(scene.path("d.h5"));
  examples[0].features["next_id"] = std::int64_t{99};
  CHECK_THROWS_WITH(lm.model.task->feed(examples, "d.h5"), Contains("d.h5: example 0:0: next_id"));
  examples[0].features["next_id"] = std::int64_t{0};
  std::get<std::vector<std::int64_t>>(examples[0].features["token_ids"])[1] = 10;
  CHECK_THROWS_WITH(lm.model.task->feed(examples, "d.h5"), Contains("token_ids"));
}

}  // namespace
}  // namespace etc::test
