// Rates of the two sparse operators on the device, compared with the library's GEMMs of dense attention.
#include "etc_core/autograd/attention.h"
#include "etc_core/ops/cuda/product.h"
#include "etc_core/ops/elementwise.h"
#include "sparse/etc_attention.h"
#include "sparse/labels/builders.h"
#include "tests/gpu_check/device_arrays.h"
#include "tests/gpu_check/stages.h"
#include "tests/gpu_check/stopwatch.h"

namespace etc::gpu_check {

namespace {

constexpr std::int64_t kHeadSize = 64, kLongPerGlobal = 16;

// Random rows in bf16, the type that a model's GEMMs write.
Tensor random_there(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  const Tensor fp32 = random_on(Device::cuda, {rows, cols}, seed);
  const Tensor bf16 = Tensor::empty({rows, cols}, Purpose::activations, Device::cuda, ElementType::bf16);
  ops::round_to_bf16(Device::cuda, fp32.data(), bf16.bf16(), fp32.size());
  return bf16;
}

// One example: `length` long tokens, and one global token for every kLongPerGlobal of them.
class Problem {
 public:
  Problem(std::int64_t heads, std::int64_t length, std::int64_t radius, bool scores)
      : globals_(length / kLongPerGlobal), width_(heads * kHeadSize), layers_(scores ? 2 : 1) {
    const std::int64_t long_offsets[] = {0, length}, global_offsets[] = {0, globals_};
    sparse::LabelTensors labels;
    labels.examples = 1;
    labels.long_offsets = long_offsets;
    labels.global_offsets = global_offsets;
    labels.radius = radius;
    batch_->operators.push_back({sparse::build_long_tiles(labels)});
    batch_->operators.push_back({sparse::build_global_tiles(labels)});
    batch_->heads = heads;
    batch_->head_size = kHeadSize;
    batch_->compute = ComputeType::bf16;
    batch_->sample_ordinals = {0};
    for (std::uint64_t i = 0; i < 3; ++i) {  // queries, keys, values
      of_long_.emplace_back(random_there(length, width_, i + 1), true);
      of_global_.emplace_back(random_there(globals_, width_, i + 4), true);
    }
    dlong_ = random_there(length, width_, 7);
    dglobal_ = random_there(globals_, width_, 8);
  }

  // Runs all layers of one operator. With scores, the first layer writes them and the second adds to them.
  void pass(bool global_side, bool backward) {
    if (layers_ > 1) {
      sparse::ScoreOptions options;
      options.layers = layers_;
      options.heads = batch_->heads;
      options.types = {!global_side, !global_side, global_side, global_side};
      options.training = backward;
      options.device = Device::cuda;
      batch_->scores.emplace(options, batch_->scored_operators());
    }
    const auto &own = global_side ? of_global_ : of_long_, &other = global_side ? of_long_ : of_global_;
    const AttentionInputs inputs{{own[0]}, {{{{own[1]}, {own[2]}}, {{other[1]}, {other[2]}}}}, {}};
    const auto& op = global_side ? sparse::kGlobalAttention : sparse::kLongAttention;
    Tape tape(backward ? Recording::on : Recording::off);
    for (int layer = 0; layer < layers_; ++layer) {
      const Var out = attention(tape, op, batch_, layer, Pass::forward, inputs);
      if (backward) out.gradient()->add(global_side ? dglobal_ : dlong_);
    }
    if (backward) tape.backward();
    for (const auto* side : {&of_long_, &of_global_}) {
      for (Var var : *side) var.drop_grad();
    }
  }

  // Operations of one product over the visible pairs of all layers.
  double product(bool global_side) const {
    const auto& types = batch_->operators[global_side].tiles.types;
    const std::int64_t pairs = types[0].visible_pairs + types[1].visible_pairs;
    return 2.0 * static_cast<double>(pairs * width_ * layers_);
  }

  // Bytes of the running scores, 0 without them.
  double score_bytes() const { return batch_->scores ? static_cast<double>(batch_->scores->bytes()) : 0; }

 private:
  std::int64_t globals_, width_;
  int layers_;
  const std::shared_ptr<AttentionBatch> batch_ = std::make_shared<AttentionBatch>();
  std::vector<Var> of_long_, of_global_;
  Tensor dlong_, dglobal_;
};

std::string measure(Problem& problem, bool global_side, const AttentionBench& bench, Json& figures) {
  const double forward = seconds_of(bench.repeats, [&] { problem.pass(global_side, false); });
  const double scores = 2 * problem.score_bytes();  // written by the first layer, read by the second
  const double both = seconds_of(bench.repeats, [&] { problem.pass(global_side, true); });
  const double operations = problem.product(global_side);
  figures["forward_seconds"] = forward;
  figures["forward_useful_tflops"] = 2 * operations / forward / 1e12;
  figures["forward_and_backward_seconds"] = both;
  figures["forward_and_backward_useful_tflops"] = 7 * operations / both / 1e12;
  if (scores > 0) {
    figures["forward_score_gb_per_second"] = scores / forward / 1e9;
    figures["forward_scores_percent_of_bandwidth"] = 100 * scores / forward / bench.bytes_per_second;
  }
  return "";
}

// Q·Kᵀ and P·V of all heads in bf16, without the softmax between them.
std::string dense_products(std::int64_t length, const AttentionBench& bench, Json& figures) {
  const Tensor q = random_there(length, kHeadSize, 1), k = random_there(length, kHeadSize, 2);
  const Tensor v = random_there(length, kHeadSize, 3), p = random_there(length, length, 4);
  const Tensor s = Tensor::empty({length, length}, Purpose::activations, Device::cuda);
  const Tensor out = Tensor::empty({length, kHeadSize}, Purpose::activations, Device::cuda);
  ops::cuda::Product scores, sums;
  scores.rows = scores.cols = length;
  scores.inner = kHeadSize;
  scores.compute = ComputeType::bf16;
  scores.a = {q.bf16(), kHeadSize, false};
  scores.b = {k.bf16(), kHeadSize, true};
  scores.c = s.data();
  scores.c_stride = length;
  sums.rows = length;
  sums.cols = kHeadSize;
  sums.inner = length;
  sums.compute = ComputeType::bf16;
  sums.a = {p.bf16(), length, false};
  sums.b = {v.bf16(), kHeadSize, false};
  sums.c = out.data();
  sums.c_stride = kHeadSize;
  const double seconds = seconds_of(bench.repeats, [&] {
    for (std::int64_t head = 0; head < bench.heads; ++head) {
      ops::cuda::multiply(scores);
      ops::cuda::multiply(sums);
    }
  });
  figures["seconds"] = seconds;
  figures["tflops"] = 4.0 * static_cast<double>(length * length * kHeadSize * bench.heads) / seconds / 1e12;
  return "";
}

}  // namespace

void bench_attention(Report& report, const AttentionBench& bench) {
  for (const std::int64_t length : bench.lengths) {
    for (const std::int64_t radius : bench.radii) {
      for (const bool scores : {false, true}) {
        const std::string where = " n=" + std::to_string(length) + " radius=" + std::to_string(radius);
        Problem problem(bench.heads, length, radius, scores);
        for (const bool global_side : {false, true}) {
          run_case(report, (global_side ? "global attention" : "long attention") + where + (scores ? " scores" : ""),
                   [&](Json& figures) { return measure(problem, global_side, bench, figures); });
        }
      }
    }
  }
  for (const std::int64_t length : bench.dense_lengths) {
    run_case(report, "dense attention's products by the library n=" + std::to_string(length),
             [&](Json& figures) { return dense_products(length, bench, figures); });
  }
}

}  // namespace etc::gpu_check
