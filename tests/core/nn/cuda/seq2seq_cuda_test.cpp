// Encoder-decoders on the CUDA backend, with kernels run by the emulator, against the CPU's results.
#include <cmath>

#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/nn/seq2seq/incremental_decoder.h"
#include "tests/core/nn/small_seq2seq.h"
#include "tests/support/simt/emulator.h"

namespace etc {
namespace {

using test::Pairs;
using test::SmallSeq2Seq;
using Norm = Seq2SeqConfig::Norm;

std::vector<float> host(const Tensor& tensor) {
  const Tensor values = tensor.to(Device::cpu);
  return {values.data(), values.data() + values.size()};
}

// Norm of the difference divided by the norm of the expected values.
double relative_difference(const std::vector<float>& got, const std::vector<float>& expected) {
  double difference = 0, norm = 0;
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(1.0 * got[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / norm);
}

// Gradients of every parameter in training, with label smoothing.
std::vector<float> gradients(SmallSeq2Seq& model, const Pairs& pairs) {
  ForwardOptions options;
  options.training = true;
  options.seed = 17;
  Tape tape(Recording::on);
  {
    const Var states = model.run(tape, pairs, options).decoded;
    states.gradient()->add(
        vocabulary_loss_with_gradients(states.value(), model.decoder.output(), pairs.labels, 0.5, 0.1).dx);
  }
  tape.backward();
  std::vector<float> all;
  for (const auto& parameter : model.parameters.all()) {
    const std::vector<float> own = host(parameter->grad);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

// States of the last of four steps, during which two hypotheses swap places.
std::vector<float> incremental(SmallSeq2Seq& model, const Pairs& pairs) {
  Tape tape(Recording::off);
  const Tensor encoded = model.encoder.forward(tape, pairs.source, {}).long_states.value();
  IncrementalDecoder decoder(model.decoder, encoded, pairs.source.long_offsets);
  Tensor states = decoder.step(std::vector<HypothesisStep>{{0, -1, 2}, {1, -1, 2}});
  states = decoder.step(std::vector<HypothesisStep>{{0, 0, 5}, {0, 0, 6}, {1, 1, 7}});
  states = decoder.step(std::vector<HypothesisStep>{{0, 1, 8}, {0, 0, 9}, {1, 2, 4}});
  return host(decoder.step(std::vector<HypothesisStep>{{0, 1, 4}, {1, 2, 5}}));
}

TEST_CASE("emulated encoder-decoders compute the CPU's gradients, and the CPU's states token by token", "[nn][cuda]") {
  register_cuda_backend();
  for (const Norm norm : {Norm::post_ln, Norm::admin, Norm::deepnet}) {
    Seq2SeqConfig config = test::small_seq2seq();
    config.norm = norm;
    config.num_decoder_layers = 2;
    CAPTURE(test::name_of(config));
    const Pairs pairs({{7, 4}, {3, 5}});
    SmallSeq2Seq on_host(config), on_device(config);
    on_device.parameters.to(Device::cuda);
    const std::int64_t before = simt::emulator_counts().launches;
    CHECK(relative_difference(gradients(on_device, pairs), gradients(on_host, pairs)) < 1e-5);
    CHECK(relative_difference(incremental(on_device, pairs), incremental(on_host, pairs)) < 1e-5);
    CHECK(simt::emulator_counts().launches > before);
  }
}

}  // namespace
}  // namespace etc
