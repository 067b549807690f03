// Head and loss against the numbers of the published ones, the worked example and central differences.
#include "tasks/nq/head.h"

#include <cmath>

#include "etc_core/nn/etc_config.h"
#include "etc_core/ops/register.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/core/tensor_values.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/worst.h"
#include "tests/tasks/golden_named.h"

using namespace etc;
using namespace etc::nq;

namespace {

using Numbers = std::vector<std::int64_t>;

// Converts the reference's layout [B, 4, L] to ours, [B·L, 4], and back.
std::vector<float> transposed(const std::vector<float>& values, std::int64_t batch, std::int64_t rows,
                              std::int64_t columns) {
  std::vector<float> result(values.size());
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        result[static_cast<std::size_t>((b * columns + c) * rows + r)] =
            values[static_cast<std::size_t>((b * rows + r) * columns + c)];
      }
    }
  }
  return result;
}

Numbers equal_offsets(std::int64_t batch, std::int64_t length) {
  Numbers offsets;
  for (std::int64_t b = 0; b <= batch; ++b) offsets.push_back(b * length);
  return offsets;
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double v : values) total += v;
  return total;
}

// The tolerance the golden numbers suggest: 1e-5 relative, 1e-6 absolute.
void require_close(const std::vector<float>& ours, const std::vector<float>& golden, double& worst) {
  REQUIRE(ours.size() == golden.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double allowed = 1e-6 + 1e-5 * std::abs(static_cast<double>(golden[i]));
    const double error = std::abs(static_cast<double>(ours[i]) - golden[i]);
    test::keep_worst(worst, error / allowed);
    if (!(error <= allowed)) {
      CAPTURE(i, ours[i], golden[i]);
      REQUIRE(error <= allowed);
    }
  }
}

Tensor tensor_of(const test::GoldenArray<float>& array, std::vector<std::int64_t> shape) {
  Tensor tensor = Tensor::empty(std::move(shape), Purpose::activations);
  std::copy(array.values.begin(), array.values.end(), tensor.data());
  return tensor;
}

EtcConfig model_of_width(std::int64_t hidden) {
  EtcConfig model;
  model.hidden_size = hidden;
  return model;
}

// A golden loss: logits and labels of some windows, the loss, its five parts and its gradients.
class GoldenLoss {
 public:
  GoldenLoss(const test::GoldenFile& file, std::string group)
      : file_(file),
        group_(std::move(group)),
        labels_(file.read<std::int64_t>(at("labels")).values),
        type_labels_(file.read<std::int64_t>(at("answer_type")).values),
        types_(file.read<float>(at("answer_type_logits")).values) {
    const auto logits = file.read<float>(at("position_logits"));  // [B, 4, L]
    B_ = logits.shape.at(0), L_ = logits.shape.at(2);
    positions_ = transposed(logits.values, B_, 4, L_);
  }

  void compare(double& worst) const {
    std::vector<float> dpositions(positions_.size()), dtypes(types_.size());
    const double loss = mean_loss(positions_, types_, type_labels_, dpositions.data(), dtypes.data());
    CHECK(loss == Approx(file_.real_attribute(group_, "loss")).epsilon(1e-9));
    CHECK(loss == Approx(file_.real_attribute(group_, "loss_float32")).epsilon(3e-6));
    require_close(dpositions, transposed(file_.read<float>(at("grad_position_logits")).values, B_, 4, L_), worst);
    require_close(dtypes, file_.read<float>(at("grad_answer_type_logits")).values, worst);
    CHECK(file_.string_attribute(group_, "parts_order") == "sa_start,sa_end,la_start,la_end,answer_type");
    const auto parts = file_.real_attributes(group_, "parts");
    REQUIRE(parts.size() == 5);
    for (std::size_t part = 0; part < 5; ++part) {
      CAPTURE(part);
      CHECK(part_of(part) == Approx(parts[part]).epsilon(1e-9));
    }
  }

  // The labels are those of the windows that the case names.
  void require_labels_of_windows(const std::string& config) const {
    const test::GoldenFile features(test::golden_beside(file_.path(), "nq_decode", "nq_features.h5"));
    Numbers labels, types;
    for (const double row : file_.real_attributes(group_, "window_row")) {
      const auto of = [&](const char* feature) {
        return features.read_ragged<std::int64_t>(config + "/" + feature).at(static_cast<std::size_t>(row)).at(0);
      };
      for (const char* feature : {"sa_start", "sa_end", "la_start", "la_end"}) labels.push_back(of(feature));
      types.push_back(of("answer_type"));
    }
    CHECK(labels == labels_);
    CHECK(types == type_labels_);
  }

 private:
  std::string at(const std::string& name) const { return group_ + "/" + name; }

  double mean_loss(const std::vector<float>& positions, const std::vector<float>& types, const Numbers& type_labels,
                   float* dpositions, float* dtypes) const {
    const Numbers offsets = equal_offsets(B_, L_);
    return sum(window_losses({offsets, positions.data(), types.data(), labels_, type_labels, static_cast<double>(B_),
                              dpositions, dtypes})) /
           static_cast<double>(B_);
  }

  // One of the five cross-entropies. With equal logits the other four are log L each, or 0 without a type label.
  double part_of(std::size_t part) const {
    std::vector<float> positions(positions_.size(), 0);
    for (std::size_t i = part; part < 4 && i < positions.size(); i += 4) positions[i] = positions_[i];
    const bool type = part == 4;
    const Numbers& type_labels = type ? type_labels_ : Numbers(type_labels_.size(), -1);
    const double loss = mean_loss(positions, types_, type_labels, nullptr, nullptr);
    return 5 * loss - (type ? 4 : 3) * std::log(static_cast<double>(L_));
  }

  const test::GoldenFile& file_;
  std::string group_;
  Numbers labels_, type_labels_;
  std::vector<float> types_, positions_;  // [B, 5], [B · L, 4]
  std::int64_t B_ = 0, L_ = 0;
};

}  // namespace

TEST_CASE("losses and their gradients equal the published ones", "[tasks][nq][golden]") {
  ops::register_cpu_ops();
  const auto files = test::golden_named("nq_decode", ".h5");
  if (files.empty()) return test::skip("no golden Natural Questions losses");
  std::int64_t cases = 0;
  double worst = 0;
  for (const auto& path : files) {
    const test::GoldenFile file(path);
    REQUIRE_FALSE(file.groups("loss").empty());
    for (const std::string& name : file.groups("loss")) {
      CAPTURE(path, name);
      const GoldenLoss golden(file, "loss/" + name);
      golden.compare(worst);
      if (file.has_attribute("loss/" + name, "window_row")) golden.require_labels_of_windows(name);
      ++cases;
    }
    file.require_all_read("loss");
  }
  std::printf("nq losses: %lld cases, worst gradient at %.3f of the tolerance\n", static_cast<long long>(cases), worst);
}

TEST_CASE("logits and gradients of the head equal the published ones, with and without mask", "[tasks][nq][golden]") {
  ops::register_cpu_ops();
  const auto files = test::golden_named("nq_decode", ".h5");
  if (files.empty()) return test::skip("no golden Natural Questions head");
  std::int64_t cases = 0;
  double worst = 0;
  for (const auto& path : files) {
    const test::GoldenFile file(path);
    const auto hidden = file.read<float>("head/hidden");  // [B, L, H]
    const std::int64_t B = hidden.shape[0], L = hidden.shape[1], H = hidden.shape[2];
    const auto token_ids = file.read<std::int32_t>("head/token_ids").values;
    const auto labels = file.read<std::int64_t>("head/labels").values;
    const auto type_labels = file.read<std::int64_t>("head/answer_type").values;
    const PositionMask mask{static_cast<std::int32_t>(file.int_attribute("head", "cls_id")),
                            static_cast<std::int32_t>(file.int_attribute("head", "sep_id"))};
    const Numbers offsets = equal_offsets(B, L);
    for (const char* variant : {"plain", "masked"}) {
      CAPTURE(path, variant);
      const bool masked = variant == std::string("masked");
      const std::string at = std::string("head/") + variant + "/";
      ParameterSet parameters;
      const Head head(model_of_width(H), masked ? std::optional(mask) : std::nullopt, parameters);
      parameters.initialize(1);
      const std::vector<std::pair<std::string, std::string>> names = {
          {"cls/nq/long_output_weights", "long_output_weights"},
          {"cls/nq/long_output_bias", "long_output_bias"},
          {"answer_type_output_weights", "answer_type_output_weights"},
          {"answer_type_output_bias", "answer_type_output_bias"}};
      for (const auto& [ours, theirs] : names) {
        const auto values = file.read<float>("head/" + theirs).values;
        Parameter& parameter = parameters.at(ours);
        REQUIRE(parameter.value.size() == std::ssize(values));
        std::copy(values.begin(), values.end(), parameter.value.data());
      }
      if (masked) {
        const auto allowed = file.read<std::uint8_t>(at + "allowed").values;
        for (std::int64_t b = 0; b < B; ++b) {
          const auto ours = allowed_positions({token_ids.data() + b * L, static_cast<std::size_t>(L)}, mask);
          REQUIRE(std::equal(ours.begin(), ours.end(), allowed.begin() + b * L));
        }
      }
      Tape tape(Recording::on);
      Var states(tensor_of(hidden, {B * L, H}), true);
      {
        HeadOutput logits = head.logits(tape, states, offsets, token_ids);
        const auto golden = file.read<float>(at + "position_logits");
        require_close(test::values_of(logits[kPositionLogits].value()), transposed(golden.values, B, 4, L), worst);
        require_close(test::values_of(logits[kTypeLogits].value()), file.read<float>(at + "answer_type_logits").values,
                      worst);
        const auto losses = window_losses(
            {offsets, logits[kPositionLogits].value().data(), logits[kTypeLogits].value().data(), labels, type_labels,
             static_cast<double>(B), logits[kPositionLogits].grad().data(), logits[kTypeLogits].grad().data()});
        CHECK(sum(losses) / static_cast<double>(B) ==
              Approx(file.real_attribute(std::string("head/") + variant, "loss")).epsilon(1e-5));
      }
      tape.backward();
      require_close(test::values_of(states.grad()), file.read<float>(at + "grad_hidden").values, worst);
      for (const auto& [ours, theirs] : names) {
        require_close(test::values_of(parameters.at(ours).grad), file.read<float>(at + "grad_" + theirs).values, worst);
      }
      ++cases;
    }
    file.require_all_read("head");
  }
  std::printf("nq head: %lld cases, worst number at %.3f of the tolerance\n", static_cast<long long>(cases), worst);
}

TEST_CASE("the worked loss, and windows without a type label", "[tasks][nq]") {
  ops::register_cpu_ops();
  // Columns (1,0,0,0), (1,0,0,0), (0,0,0,0), (0,2,0,0) as [L, 4].
  const std::vector<float> positions = {1, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0};
  const std::vector<float> types = {0, 0, 0, 0, 1};
  const Numbers offsets = {0, 4}, labels = {0, 1, 3, 1};
  const Numbers short_type = {4}, no_type = {-1};
  CHECK(window_losses({offsets, positions.data(), types.data(), labels, short_type, 1, nullptr, nullptr})[0] ==
        Approx(1.023843).epsilon(1e-6));
  std::vector<float> dtypes(5, 7);
  std::vector<float> dpositions(16);
  CHECK(window_losses({offsets, positions.data(), types.data(), labels, no_type, 1, dpositions.data(),
                       dtypes.data()})[0] == Approx(1.023843 - 0.904832 / 5).epsilon(1e-6));
  CHECK(dtypes == std::vector<float>(5, 0));
}

TEST_CASE("the mask keeps CLS and what lies between the first two separators", "[tasks][nq]") {
  const std::vector<std::int32_t> ids = {101, 3001, 3002, 102, 107, 2001, 102, 0};
  CHECK(allowed_positions(ids, {101, 102}) == std::vector<std::uint8_t>{1, 0, 0, 0, 1, 1, 0, 0});
}

TEST_CASE("gradients of head and loss equal central differences", "[tasks][nq]") {
  ops::register_cpu_ops();
  for (const bool masked : {false, true}) {
    CAPTURE(masked);
    ParameterSet parameters;
    const Head head(model_of_width(6), masked ? std::optional(PositionMask{9, 8}) : std::nullopt, parameters);
    parameters.initialize(3);
    const std::vector<std::int64_t> offsets = {0, 5, 6, 12};  // windows of 5, 1 and 6 tokens
    const std::vector<std::int32_t> token_ids = {9, 8, 1, 2, 8, 9, 9, 1, 8, 1, 1, 8};
    const Numbers labels = {2, 3, 2, 0, 0, 0, 0, 0, 3, 4, 3, 4}, types = {4, -1, 1};
    const auto loss_of = [&](Tape& tape, const std::vector<Var>& inputs) {
      HeadOutput logits = head.logits(tape, inputs[0], offsets, token_ids);
      Tensor loss = Tensor::empty({1}, Purpose::activations);
      const bool recording = tape.recording();
      Tensor dpositions = Tensor::empty(logits[kPositionLogits].value().shape(), Purpose::gradients);
      Tensor dtypes = Tensor::empty(logits[kTypeLogits].value().shape(), Purpose::gradients);
      const auto losses =
          window_losses({offsets, logits[kPositionLogits].value().data(), logits[kTypeLogits].value().data(), labels,
                         types, 3, dpositions.data(), dtypes.data()});
      loss.data()[0] = static_cast<float>(sum(losses) / 3);
      Var result(loss, recording);
      if (recording) {
        tape.record([result, logits, dpositions, dtypes]() mutable {
          const float upstream = result.grad().data()[0];
          for (std::int64_t i = 0; i < dpositions.size(); ++i) dpositions.data()[i] *= upstream;
          for (std::int64_t i = 0; i < dtypes.size(); ++i) dtypes.data()[i] *= upstream;
          logits[kPositionLogits].gradient()->add(dpositions);
          logits[kTypeLogits].gradient()->add(dtypes);
        });
      }
      return std::vector<Var>{result};
    };
    std::vector<Parameter*> all;
    for (const char* name : {"cls/nq/long_output_weights", "cls/nq/long_output_bias", "answer_type_output_weights",
                             "answer_type_output_bias"}) {
      all.push_back(&parameters.at(name));
    }
    test::check_gradients(loss_of, {test::noise({12, 6}, 5)}, all);
  }
}
