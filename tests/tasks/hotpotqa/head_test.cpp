// Losses and gradients: worked numbers, the reference's losses, central differences, micro-batches.
#include "tasks/hotpotqa/head.h"
#include "etc_core/nn/backends.h"

#include "etc_core/nn/etc_encoder.h"
#include "tasks/hotpotqa/predictions.h"
#include "tasks/registry.h"
#include "tasks/train/run_config.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/worst.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/hotpotqa/examples.h"
#include "tests/tasks/shared_tokenizer.h"

using namespace etc;
using namespace etc::hotpotqa;

namespace {

using Numbers = std::vector<std::int64_t>;

double mean_of_terms(const std::vector<std::vector<double>>& terms) {
  double sum = 0;
  for (const auto& term : terms) {
    for (const double loss : term) sum += loss;
  }
  return sum / static_cast<double>(terms.size());
}

// Section `task` at its defaults.
Json default_config_section(const std::string& encoding) {
  Json section = default_config("hotpotqa").at("task");
  section["answer_encoding"] = encoding;
  return section;
}

// Three examples, the last without labels.
std::vector<data::LoadedExample> three_examples() {
  Json unlabelled = test::worked_hotpotqa_record("z1", "u");
  unlabelled.erase("answer");
  Json second = test::worked_hotpotqa_record("yes", "y");
  second["context"][0][1].push_back(" x0");
  return {test::hotpotqa_example(test::worked_hotpotqa_record("y0 y1"), 0), test::hotpotqa_example(second, 1),
          test::hotpotqa_example(unlabelled, 2, false)};
}

// The worked record with the answer yes, and logits that predict it with its supporting facts A.1 and B.0.
struct WorkedPrediction {
  WorkedPrediction() {
    std::vector<float> facts(11, -20);
    facts[7] = facts[10] = 20;
    input.long_offsets = {0, 14};
    input.global_offsets = {0, 11};
    logits[kFactLogits] = Var(Tensor::from(facts, {11}, Purpose::activations));
    logits[kTypeLogits] = Var(Tensor::from({0, 5, 0}, {1, 3}, Purpose::activations));
    logits[kAnswerLogits] = Var(Tensor::from(std::vector<float>(28, 0), {14, 2}, Purpose::activations));
  }

  std::vector<data::LoadedExample> examples = {test::hotpotqa_example(test::worked_hotpotqa_record("yes"))};
  EncoderInput input;
  HeadOutput logits = HeadOutput(3);
};

}  // namespace

TEST_CASE("HotpotQA's losses give the worked numbers", "[tasks][hotpotqa]") {
  register_cpu_backend();
  Labels labels;
  labels.facts = {1, 0, 0};
  labels.types = {0};
  labels.spans = {2, 3};
  const std::vector<float> facts = {2, -1, 0}, type = {1, 0, -1}, ends = {0, 0, 1, 0, 2, 0, 3, 2};
  const Numbers long_offsets = {0, 4}, global_offsets = {0, 3};
  LossArguments args;
  args.long_offsets = long_offsets;
  args.global_offsets = global_offsets;
  args.labels = &labels;
  args.logits[kFactLogits] = facts.data();
  args.logits[kTypeLogits] = type.data();
  args.logits[kAnswerLogits] = ends.data();
  const auto terms = losses(args);
  CHECK(terms[0][0] == Approx(1.1333369).margin(1e-7));
  CHECK(mean_of_terms(terms) == Approx(0.8304714).margin(1e-7));
}

TEST_CASE("HotpotQA's losses equal the reference's in every golden case", "[tasks][hotpotqa][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("hotpotqa_decode", ".h5");
  if (files.empty() || !data) return test::skip("no golden file hotpotqa_decode*.h5");
  register_cpu_backend();
  double worst = 0;
  for (const auto& path : files) {
    const test::GoldenFile file(path);
    auto answers = path;
    const auto& records = test::shared_raw_records(*data / "hotpotqa" / file.string_attribute("", "source_file"),
                                                   data::RecordLayout::array);
    for (const Json& expected : read_json_file(answers.replace_extension(".json"))) {
      const auto name = expected.at("case").get<std::string>();
      INFO(name);
      const auto L = expected.at("long_seq_len").get<std::int64_t>(),
                 G = expected.at("global_seq_len").get<std::int64_t>();
      // Labels as in training, padded, because the reference counts every position.
      PrepareConfig config = test::hotpotqa_config(Parity::reference, L, G);
      config.special_ids = published_special_ids(expected.at("tokenizer") == "sentencepiece");
      const HotpotqaPreparation preparation(
          config, test::shared_tokenizer(*data / "vocab" / expected.at("vocab").get<std::string>()));
      const auto& record = records.at(expected.at("record_index").get<std::size_t>());
      REQUIRE(record.value["_id"] == expected.at("id"));
      const prepare::Converted converted = preparation.convert(record);
      // Without losses where the record is not trained on.
      REQUIRE(expected.at("loss").is_null() == (converted.faults.dropped() || converted.faults.rejected()));
      if (expected.at("loss").is_null()) continue;
      const std::vector<data::LoadedExample> examples = {{0, 0, converted.examples.at(0)}};
      const Json& golden_labels = expected.at("loss").at("labels");
      CHECK(golden_labels.size() == 3);
      for (const auto& [key, label] : {std::pair{"answer_type", "answer_types"}, std::pair{"begin", "answer_begins"},
                                       std::pair{"end", "answer_ends"}}) {
        CHECK(golden_labels.at(key) == std::get<std::int64_t>(converted.examples[0].at(label)));
      }
      const auto read = [&](const char* set) { return file.read<float>(name + "/" + set).values; };
      const auto facts = read("supporting_facts_logits"), type = read("answer_type_logits"), bio = read("bio_logits");
      const auto begin = read("begin_logits"), end = read("end_logits");
      std::vector<float> ends;
      for (std::size_t i = 0; i < begin.size(); ++i) ends.insert(ends.end(), {begin[i], end[i]});
      const Numbers long_offsets = {0, L}, global_offsets = {0, G};
      const auto close = [&](double ours, const char* term) {
        const double theirs = expected.at("loss").at(term).get<double>();
        test::keep_worst(worst, std::abs(ours - theirs) / std::max(1e-9, std::abs(theirs)));
        CHECK(ours == Approx(theirs).epsilon(1e-8));  // both are computed in double precision
      };
      for (const auto encoding : {AnswerEncoding::span, AnswerEncoding::bio}) {
        Labels labels = labels_of(examples, encoding);
        labels.facts.resize(static_cast<std::size_t>(G), 0);
        if (encoding == AnswerEncoding::bio) labels.bio.resize(static_cast<std::size_t>(L), 2);
        LossArguments args;
        args.encoding = encoding;
        args.long_offsets = long_offsets;
        args.global_offsets = global_offsets;
        args.labels = &labels;
        args.logits[kFactLogits] = facts.data();
        args.logits[kTypeLogits] = type.data();
        args.logits[kAnswerLogits] = encoding == AnswerEncoding::bio ? bio.data() : ends.data();
        const auto terms = losses(args);
        close(terms[0][0], "supporting_facts");
        close(terms[1][0], "answer_type");
        if (encoding == AnswerEncoding::span) {
          close(terms[2][0], "begin");
          close(terms[3][0], "end");
          close(mean_of_terms(terms), "total_span");
        } else {
          close(terms[2][0], "bio");
          close(mean_of_terms(terms), "total_bio");
        }
      }
    }
  }
  WARN("worst relative difference of a loss: " << worst);
}

TEST_CASE("gradients of HotpotQA's losses equal central differences", "[tasks][hotpotqa]") {
  register_cpu_backend();
  const auto examples = three_examples();
  const EtcConfig model = test::tiny_hotpotqa_model();
  for (const char* encoding : {"span", "bio"}) {
    INFO(encoding);
    const auto task = make_task(default_config_section(encoding), model);
    const EncoderInput input = task->feed(examples, "here");
    ParameterSet parameters;
    task->add_parameters(parameters);
    parameters.initialize(1);
    for (const auto& parameter : parameters.all()) {
      const Tensor noise = test::noise(parameter->shape, 7);
      for (std::int64_t i = 0; i < noise.size(); ++i) parameter->value.data()[i] = noise.data()[i];
    }
    std::vector<double> counts(task->loss_terms().size());
    for (const auto& example : examples) task->count(example, counts);
    CHECK(counts == std::vector<double>(counts.size(), 2));  // the third has no labels
    const Tensor long_states = test::noise({input.long_tokens(), model.hidden_size}, 3);
    const Tensor global_states = test::noise({input.global_tokens(), model.hidden_size}, 4);
    const auto loss_of = [&](Tape& tape, const Var& z, const Var& x) {
      EncoderStates states;
      states.long_states = z;
      states.global_states = x;
      HeadOutput logits = task->head(tape, examples, states, input, ForwardOptions{});
      return task->loss(tape, examples, input, logits, counts);
    };
    const Var z(long_states, true), x(global_states, true);
    Tape tape(Recording::on);
    loss_of(tape, z, x);
    tape.backward();
    const auto loss = [&] {
      Tape silent(Recording::off);
      return loss_of(silent, Var(long_states), Var(global_states));
    };
    const auto check = [&](const Tensor& value, const Tensor& gradient) {
      for (std::int64_t i = 0; i < value.size(); i += 3) {
        const double numeric = test::numeric_derivative(loss, value.data()[i], 1e-2f);
        REQUIRE(std::abs(numeric - gradient.data()[i]) < 1e-4);
      }
    };
    check(long_states, z.gradient()->tensor());
    check(global_states, x.gradient()->tensor());
    for (const auto& parameter : parameters.all()) check(parameter->value, parameter->grad);
  }
}

TEST_CASE("letters of yes and no in the text are BIO labels in the reference only", "[tasks][hotpotqa]") {
  const std::string text = R"({"_id": "n", "question": "q0", "answer": "no", "supporting_facts": [["a0", 0]],
      "context": [["a0", ["x0 known x1"]]]})";
  for (const Parity parity : {Parity::reference, Parity::repaired}) {
    const HotpotqaPreparation preparation(test::hotpotqa_config(parity), test::hotpotqa_tokenizer());
    const std::vector<data::LoadedExample> examples = {
        {0, 0, preparation.convert(test::raw_record(text)).examples.at(0)}};
    CHECK(std::get<Numbers>(examples[0].features.at("span_begins")) == Numbers{4});
    const Labels labels = labels_of(examples, AnswerEncoding::bio);
    Numbers expected(6, 2);
    if (parity == Parity::reference) expected[4] = 0;
    CHECK(labels.bio == expected);
  }
}

TEST_CASE("rejected records have an empty answer in the file and score 0", "[tasks][hotpotqa]") {
  register_cpu_backend();
  const test::TemporaryFolder folder;
  const WorkedPrediction worked;
  PredictionRequest request;
  request.output = folder / "p.json";
  HotpotqaPredictions predictions(request, {}, test::hotpotqa_tokenizer());
  data::Fault fault;
  fault.id = "bad";
  fault.code = "context_empty";
  predictions.add_rejected(fault);
  CHECK(predictions.metrics().empty());  // no labels so far
  predictions.add(worked.examples, worked.input, worked.logits);
  CHECK(predictions.metrics()[0] == std::pair<std::string, double>("joint_f1", 0.5));
  fault.code = "duplicate_id";
  predictions.add_rejected(fault);
  fault.id = "w";  // the example's: not a second time
  fault.code = "";
  predictions.add_rejected(fault);
  fault.id = "";
  predictions.add_rejected(fault);
  CHECK(predictions.metrics()[0].second == 0.5);
  predictions.finish();
  const Json written = read_json_file(request.output);
  CHECK(written.at("answer") == Json({{"w", "yes"}, {"bad", ""}}));
  CHECK(written.at("sp").at("bad") == Json::array());
}

TEST_CASE("two micro-batches give the loss of one batch", "[tasks][hotpotqa]") {
  register_cpu_backend();
  const auto examples = three_examples();
  const EtcConfig model = test::tiny_hotpotqa_model();
  const auto task = make_task(default_config_section("span"), model);
  ParameterSet parameters;
  task->add_parameters(parameters);
  parameters.initialize(1);
  std::vector<double> counts(task->loss_terms().size());
  for (const auto& example : examples) task->count(example, counts);
  const auto loss_of = [&](Examples part) {
    const EncoderInput input = task->feed(part, "here");
    EncoderStates states;
    Tensor z = Tensor::zeros({input.long_tokens(), model.hidden_size}, Purpose::activations);
    Tensor x = Tensor::zeros({input.global_tokens(), model.hidden_size}, Purpose::activations);
    for (std::int64_t i = 0; i < z.size(); ++i) z.data()[i] = static_cast<float>(i % 7) * 0.1f;
    states.long_states = Var(z);
    states.global_states = Var(x);
    Tape tape(Recording::off);
    HeadOutput logits = task->head(tape, part, states, input, ForwardOptions{});
    return task->loss(tape, part, input, logits, counts);
  };
  const Examples all(examples);
  CHECK(loss_of(all.first(1)) + loss_of(all.subspan(1)) == Approx(loss_of(all)).epsilon(1e-6));
  // Without labels the divisor is 0 and so is the loss.
  std::fill(counts.begin(), counts.end(), 0.0);
  CHECK(loss_of(all.last(1)) == 0);
}

TEST_CASE("of thresholds for supporting facts that are equally good the lowest is told", "[tasks][hotpotqa]") {
  register_cpu_backend();
  const WorkedPrediction worked;  // right at every threshold but 0 and 1
  HotpotqaPredictions predictions({}, {}, test::hotpotqa_tokenizer());
  predictions.add(worked.examples, worked.input, worked.logits);
  const auto of = [&](const std::string& wanted) {
    for (const auto& [name, value] : predictions.metrics()) {
      if (name == wanted) return value;
    }
    return -1.0;
  };
  CHECK(of("tuned_joint_f1") == 1);
  CHECK(of("tuned_sf_threshold") == 0.1);
}
