// Speed of dense layers compared with one plain GEMM of oneDNN, and of row-wise operators compared with a copy.
//
//   bench_matmul [--rows 4096] [--repeat 7] [--threads 1,2] [--part linear|reduced|vocabulary|rows] [--only TEXT]
//
// All variants of a shape run in alternation, so that a slow moment of the machine affects all of them. The output is
// the median with the spread of the repeats, and the share of the library's median for that shape (GEMMs), of the first
// variant's (reduced: products in bf16 and int8) or of a copy (rows). --only measures the variants whose name contains
// TEXT; shares are then of the first of them. Caches are not flushed between repeats, since the layers of a model also
// find their input in cache where it fits.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/arguments.h"
#include "bench/array.h"
#include "bench/bench_main.h"
#include "bench/library_product.h"
#include "etc_core/autograd/vocabulary.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/median.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/random.h"
#include "etc_core/ops/activation.h"
#include "etc_core/ops/layer_norm.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/register.h"

namespace {

using namespace etc;

struct Options {
  std::int64_t rows = 4096;
  int repeat = 7;
  std::vector<int> threads = {1, 2};
  std::string part;  // empty: all
  std::string only;

  bool wants(const char* name) const { return part.empty() || part == name; }
};

Options parse(int argc, char** argv) {
  Options options;
  bench::read_arguments("bench_matmul", argc, argv,
                        {{"--rows", &options.rows},
                         {"--repeat", &options.repeat},
                         {"--threads", &options.threads},
                         {"--part", &options.part},
                         {"--only", &options.only}});
  return options;
}

bench::Array<float> numbers(std::int64_t count, std::uint64_t seed) {
  bench::Array<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = uniform_from_bits(philox({static_cast<std::uint32_t>(i), 0, 0, 0}, seed)[0]) - 0.5f;
  }
  return values;
}

struct Variant {
  std::string name;
  double work;  // floating-point operations, or bytes
  std::function<void()> run;
};

// Runs the variants in alternation and prints a line for each; the others are compared with the first.
void measure(std::vector<Variant> variants, const Options& options, const char* unit) {
  using Clock = std::chrono::steady_clock;
  variants.erase(std::remove_if(variants.begin(), variants.end(),
                                [&](const Variant& v) { return v.name.find(options.only) == std::string::npos; }),
                 variants.end());
  std::vector<std::vector<double>> rates(variants.size());
  for (const Variant& variant : variants) variant.run();  // warm-up
  for (int turn = 0; turn < options.repeat; ++turn) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const auto begin = Clock::now();
      variants[i].run();
      rates[i].push_back(variants[i].work / std::chrono::duration<double>(Clock::now() - begin).count() / 1e9);
    }
  }
  double first = 0;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    std::sort(rates[i].begin(), rates[i].end());
    const double rate = median(rates[i]);
    if (i == 0) first = rate;
    std::printf("  %-40s %7.1f %s (%.1f to %.1f)  %5.1f %%\n", variants[i].name.c_str(), rate, unit, rates[i].front(),
                rates[i].back(), 100 * rate / first);
  }
}

void check_equal(const bench::Array<float>& a, const bench::Array<float>& b, std::int64_t in) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= 1e-6 * static_cast<double>(in))) {
      fail("bench_matmul", "element {}: the library says {}, the tiles {}", i, a[i], b[i]);
    }
  }
}

void measure_linear(const Options& options, std::int64_t in, std::int64_t out) {
  const std::int64_t rows = options.rows;
  const auto x = numbers(rows * in, 1), weight = numbers(in * out, 2), bias = numbers(out, 3);
  const auto dz = numbers(rows * out, 4);
  bench::Array<float> y(static_cast<std::size_t>(rows * out)), expected(y.size()), z(y.size());
  bench::Array<float> dx(x.size()), dweight(weight.size()), dbias(bias.size());
  const bench::LibraryProduct library(rows, out, in, weight.data());
  const auto packed = ops::pack_weights(Device::cpu, {weight.data(), in, out});

  ops::LinearForward plain{.rows = rows,
                           .in = in,
                           .out = out,
                           .x = x.data(),
                           .x_stride = in,
                           .weight = weight.data(),
                           .y = y.data(),
                           .y_stride = out};
  ops::LinearForward with_packed = plain;
  with_packed.weight = nullptr;
  with_packed.packed = &packed;
  ops::LinearForward with_gelu = with_packed;
  with_gelu.bias = bias.data();
  with_gelu.activation = ops::Activation::gelu;
  ops::LinearForward training = with_gelu;
  training.packed = nullptr;
  training.weight = weight.data();
  training.pre_activation = z.data();
  ops::LinearBackward input_gradient{
      .rows = rows, .in = in, .out = out, .dz = dz.data(), .dz_stride = out, .x = x.data(), .x_stride = in};
  ops::LinearBackward weight_gradient = input_gradient;
  input_gradient.weight = weight.data();
  input_gradient.dx = dx.data();
  input_gradient.dx_stride = in;
  weight_gradient.dweight = dweight.data();
  weight_gradient.dbias = dbias.data();

  library.run(x.data(), expected.data());
  ops::linear(Device::cpu, plain);
  check_equal(expected, y, in);

  const double work = 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  std::printf("%lld x %lld -> %lld\n", static_cast<long long>(rows), static_cast<long long>(in),
              static_cast<long long>(out));
  measure({{"library, one call, weights reordered", work, [&] { library.run(x.data(), y.data()); }},
           {"linear, packed weights", work, [&] { ops::linear(Device::cpu, with_packed); }},
           {"linear, packing", work, [&] { ops::linear(Device::cpu, plain); }},
           {"linear, packed, bias + gelu", work, [&] { ops::linear(Device::cpu, with_gelu); }},
           {"linear, packing, bias + gelu, z kept", work, [&] { ops::linear(Device::cpu, training); }},
           {"gradient of x, packing", work, [&] { ops::linear_backward(Device::cpu, input_gradient); }},
           {"gradients of weight and bias", work, [&] { ops::linear_backward(Device::cpu, weight_gradient); }}},
          options, "GFLOP/s");
}

// Rounded to bf16.
bench::Array<Bf16> rounded(const bench::Array<float>& values) {
  bench::Array<Bf16> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(),
                 [](float value) { return Bf16{bf16_from_float(value)}; });
  return result;
}

// Products with bf16 and int8 operands, on the types that this processor has instructions for. Rows are bf16, as between
// the layers of an encoder in bf16 or int8.
void measure_reduced(const Options& options, std::int64_t in, std::int64_t out) {
  const std::int64_t rows = options.rows;
  const auto x = rounded(numbers(rows * in, 1)), dz = rounded(numbers(rows * out, 4));
  const auto weight = numbers(in * out, 2), bias = numbers(out, 3);
  bench::Array<Bf16> y(static_cast<std::size_t>(rows * out)), z(y.size()), dx(x.size());
  bench::Array<float> dweight(weight.size()), dbias(bias.size());
  ops::LinearForward plain{.rows = rows, .in = in, .out = out, .x_bf16 = x.data(), .x_stride = in};
  plain.y_bf16 = y.data();
  plain.y_stride = out;
  const double work = 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  std::vector<ops::PackedWeights> kept;  // of the variants below
  kept.reserve(2);
  std::vector<Variant> variants;
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::int8}) {
    if (!cpu_offers(compute)) continue;
    kept.push_back(ops::pack_weights(Device::cpu, {weight.data(), in, out}, compute));
    ops::LinearForward packed = plain;
    packed.packed = &kept.back();
    ops::LinearForward gelu = packed;
    gelu.bias = bias.data();
    gelu.activation = ops::Activation::gelu;
    const std::string name = compute_type_name(compute);
    variants.push_back({name + ", packed weights", work, [=] { ops::linear(Device::cpu, packed); }});
    variants.push_back({name + ", packed, bias + gelu", work, [=] { ops::linear(Device::cpu, gelu); }});
  }
  if (cpu_offers(ComputeType::bf16)) {
    ops::LinearForward training = plain;
    training.weight = weight.data();
    training.compute = ComputeType::bf16;
    training.bias = bias.data();
    training.activation = ops::Activation::gelu;
    training.pre_activation_bf16 = z.data();
    ops::LinearBackward input_gradient{.rows = rows, .in = in, .out = out, .dz_bf16 = dz.data(), .dz_stride = out};
    input_gradient.compute = ComputeType::bf16;
    ops::LinearBackward weight_gradient = input_gradient;
    input_gradient.weight = weight.data();
    input_gradient.dx_bf16 = dx.data();
    input_gradient.dx_stride = in;
    weight_gradient.x_bf16 = x.data();
    weight_gradient.x_stride = in;
    weight_gradient.dweight = dweight.data();
    weight_gradient.dbias = dbias.data();
    variants.push_back({"bf16, packing, bias + gelu, z kept", work, [=] { ops::linear(Device::cpu, training); }});
    variants.push_back(
        {"bf16, gradient of x, packing", work, [=] { ops::linear_backward(Device::cpu, input_gradient); }});
    variants.push_back(
        {"bf16, gradients of weight and bias", work, [=] { ops::linear_backward(Device::cpu, weight_gradient); }});
  }
  std::printf("%lld x %lld -> %lld, bf16 and int8\n", static_cast<long long>(rows), static_cast<long long>(in),
              static_cast<long long>(out));
  measure(variants, options, "GFLOP/s");
}

Tensor random_tensor(std::vector<std::int64_t> shape, std::uint64_t seed, Purpose purpose) {
  const Tensor tensor = Tensor::empty(std::move(shape), purpose);
  const auto values = numbers(tensor.size(), seed);
  std::copy(values.begin(), values.end(), tensor.data());
  return tensor;
}

// Bytes count the minimum traffic: every operand is read once, every result written once.
// The loss of a masked language model over a vocabulary, for the masked share of the rows.
void measure_vocabulary(const Options& options, std::int64_t width, std::int64_t vocabulary) {
  const std::int64_t rows = std::max<std::int64_t>(1, options.rows * 15 / 100);
  const Tensor x = random_tensor({rows, width}, 1, Purpose::activations);
  Parameter table, bias;
  table.shape = {vocabulary, width};
  table.value = random_tensor(table.shape, 2, Purpose::weights);
  bias.shape = {vocabulary};
  bias.value = random_tensor(bias.shape, 3, Purpose::weights);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i * 37) % 1000;
  bench::Array<float> weight(
      static_cast<std::size_t>(vocabulary * width));  // [width, vocabulary], the layout that oneDNN prefers
  for (std::int64_t i = 0; i < vocabulary * width; ++i) {
    weight[static_cast<std::size_t>(i % width * vocabulary + i / width)] = table.value.data()[i];
  }
  const bench::LibraryProduct library(rows, vocabulary, width, weight.data());
  bench::Array<float> logits(static_cast<std::size_t>(rows * vocabulary));
  const VocabularyLayer layer{&table, &bias};
  const double work = 2.0 * static_cast<double>(rows) * static_cast<double>(width) * static_cast<double>(vocabulary);
  std::printf("vocabulary: %lld x %lld -> %lld\n", static_cast<long long>(rows), static_cast<long long>(width),
              static_cast<long long>(vocabulary));
  measure({{"library, one call, weights reordered", work, [&] { library.run(x.data(), logits.data()); }},
           {"loss", work, [&] { vocabulary_loss(x, layer, labels); }},
           {"loss and gradients", 3 * work, [&] { vocabulary_loss_with_gradients(x, layer, labels, 1); }}},
          options, "GFLOP/s");
}

void measure_rows(const Options& options, std::int64_t cols) {
  const std::int64_t rows = options.rows;
  const auto x = numbers(rows * cols, 1), branch = numbers(rows * cols, 2), dy = numbers(rows * cols, 3);
  const auto gamma = numbers(cols, 4), beta = numbers(cols, 5);
  bench::Array<float> y(x.size()), sum(x.size()), dx(x.size()), dbranch(x.size()), dgamma(gamma.size()),
      dbeta(beta.size()), mean(static_cast<std::size_t>(rows)), rstd(mean.size());
  const std::int64_t offsets[] = {0, rows};
  const std::uint64_t ordinals[] = {1};
  ops::HiddenDropout dropout{0.1f, 1, 0, DropoutSite::long_feed_forward, 1, offsets, ordinals};

  ops::LayerNormForward norm{
      .rows = rows, .cols = cols, .x = x.data(), .gamma = gamma.data(), .beta = beta.data(), .y = y.data()};
  ops::LayerNormForward residual = norm;
  residual.branch = branch.data();
  residual.sum = sum.data();
  residual.mean = mean.data();
  residual.rstd = rstd.data();
  ops::LayerNormForward training = residual;
  training.dropout = dropout;
  ops::LayerNormBackward back{.rows = rows,
                              .cols = cols,
                              .dy = dy.data(),
                              .sum = sum.data(),
                              .mean = mean.data(),
                              .rstd = rstd.data(),
                              .gamma = gamma.data(),
                              .dx = dx.data(),
                              .dbranch = dbranch.data(),
                              .dgamma = dgamma.data(),
                              .dbeta = dbeta.data()};
  ops::LayerNormBackward back_dropout = back;
  back_dropout.dropout = dropout;

  const double array = static_cast<double>(x.size()) * sizeof(float);
  std::printf("rows of %lld x %lld\n", static_cast<long long>(rows), static_cast<long long>(cols));
  measure(
      {{"copy", 2 * array,
        [&] {
          parallel_for(rows, [&](std::int64_t row) {
            std::memcpy(y.data() + row * cols, x.data() + row * cols, static_cast<std::size_t>(cols) * 4);
          });
        }},
       {"layer norm", 2 * array, [&] { ops::layer_norm(Device::cpu, norm); }},
       {"residual + layer norm, saving", 4 * array, [&] { ops::layer_norm(Device::cpu, residual); }},
       {"residual + dropout + layer norm, saving", 4 * array, [&] { ops::layer_norm(Device::cpu, training); }},
       {"layer norm backward", 4 * array, [&] { ops::layer_norm_backward(Device::cpu, back); }},
       {"layer norm backward with dropout", 4 * array, [&] { ops::layer_norm_backward(Device::cpu, back_dropout); }},
       {"gelu", 2 * array,
        [&] { ops::activation_forward(Device::cpu, ops::Activation::gelu, x.data(), y.data(), rows * cols); }},
       {"gelu backward", 3 * array,
        [&] {
          ops::activation_backward(Device::cpu, ops::Activation::gelu, x.data(), dy.data(), dx.data(), rows * cols);
        }}},
      options, "GB/s   ");
}

void run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  ops::register_cpu_ops();
  std::printf("%s; share: of the first line of each block\n", instruction_set().c_str());
  for (const int threads : options.threads) {
    set_thread_count(threads);
    std::printf("threads: %d\n", threads);
    if (options.wants("linear")) {
      measure_linear(options, 768, 768);
      measure_linear(options, 768, 3072);
      measure_linear(options, 3072, 768);
    }
    if (options.wants("reduced")) {
      measure_reduced(options, 768, 768);
      measure_reduced(options, 768, 3072);
      measure_reduced(options, 3072, 768);
    }
    if (options.wants("vocabulary")) {
      for (const std::int64_t width : {128, 512, 768, 1024}) measure_vocabulary(options, width, 30522);
    }
    if (options.wants("rows")) measure_rows(options, 768);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return etc::bench::bench_main([&] { run(argc, argv); });
}
