// Every operator on the device: attention against the double-precision reference on the CPU tests' awkward shapes, the
// dense operators against the CPU's.
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/update.h"
#include "etc_core/tensor/tensor.h"
#include "sparse/register_cuda.h"
#include "tests/gpu_check/stages.h"
#include "tests/sparse/attention_support.h"
#include "tests/sparse/cuda/mirrored_device.h"
#include "tests/support/numbers.h"

namespace etc::gpu_check {

namespace {

void attention(Report& report) {
  test::register_mirrored_cuda_kernels();
  for (const bool bf16 : {false, true}) {
    for (const test::AttentionCase& c : test::attention_cases()) {
      for (const test::Side side : {test::Side::long_side, test::Side::global_side}) {
        for (const std::int64_t layers : {1, 3}) {
          const bool scores = layers > 1;
          const test::Stack stack{c,      side,   layers,       {scores, scores, scores, scores},
                                  scores, scores, Device::cuda, bf16};
          const std::string name =
              "attention " + test::describe(c, side) + (scores ? ", scores" : "") + (bf16 ? ", bf16" : "");
          run_case(report, name, [&](Json&) { return test::compare_with_reference(stack, test::run_stack(stack)); });
        }
      }
    }
  }
  sparse::register_cuda_kernels();  // those that take device memory
}

struct Sizes {
  std::int64_t rows, in, out;
};

// Outputs and gradients of one dense layer with gelu.
std::vector<float> dense(Device device, const Sizes& s) {
  const auto there = [&](std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
    return Tensor::from(test::random_floats(rows * cols, seed), {rows, cols}, Purpose::activations, device);
  };
  const Tensor x = there(s.rows, s.in, 1), w = there(s.in, s.out, 2), bias = there(1, s.out, 3);
  const Tensor dz = there(s.rows, s.out, 4), dw = there(s.in, s.out, 5), db = there(1, s.out, 6);
  const Tensor y = there(s.rows, s.out, 7), z = there(s.rows, s.out, 8), dx = there(s.rows, s.in, 9);
  ops::LinearForward a;
  a.rows = s.rows;
  a.in = s.in;
  a.out = s.out;
  a.x = x.data();
  a.x_stride = s.in;
  a.weight = w.data();
  a.bias = bias.data();
  a.activation = ops::Activation::gelu;
  a.y = y.data();
  a.y_stride = s.out;
  a.pre_activation = z.data();
  ops::linear(device, a);
  ops::LinearBackward b;
  b.rows = s.rows;
  b.in = s.in;
  b.out = s.out;
  b.dz = dz.data();
  b.dz_stride = s.out;
  b.x = x.data();
  b.x_stride = s.in;
  b.weight = w.data();
  b.dx = dx.data();
  b.dx_stride = s.in;
  b.add_to_dx = true;
  b.dweight = dw.data();
  b.dbias = db.data();
  ops::linear_backward(device, b);
  std::vector<float> all;
  for (const Tensor& tensor : {y, z, dx, dw, db}) {
    const Tensor host = tensor.to(Device::cpu);
    all.insert(all.end(), host.data(), host.data() + host.size());
  }
  return all;
}

}  // namespace

void kernels(Report& report) {
  for (const Sizes& s :
       {Sizes{1, 1, 1}, Sizes{5, 3, 7}, Sizes{70, 24, 16}, Sizes{513, 96, 200}, Sizes{1000, 768, 64}}) {
    const std::string name =
        "dense layer " + std::to_string(s.rows) + " " + std::to_string(s.in) + " " + std::to_string(s.out);
    run_case(report, name, [&](Json& figures) {
      const auto device = dense(Device::cuda, s), host = dense(Device::cpu, s);
      double worst = 0;
      for (std::size_t i = 0; i < host.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(host[i]) - device[i]));
      }
      figures["worst"] = worst;
      // Sums of up to 1,000 products of numbers below 1, in fp32 in another order.
      return worst <= 6e-8 * static_cast<double>(8 * std::max(s.rows, s.in)) ? "" : "differs from the CPU's";
    });
  }
  attention(report);
}

}  // namespace etc::gpu_check
