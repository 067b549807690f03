#include "etc_core/autograd/position_bias.h"

#include <vector>

#include "etc_core/autograd/recording.h"
#include "etc_core/base/counting.h"
#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"

namespace etc {

using namespace recording;

namespace {

constexpr const char* kName = "position_bias";

void check(const Tensor& rel, std::int64_t heads, const QueryBiases& biases) {
  if (rel.device() != Device::cpu) fail(kName, "rel: expected on the cpu, got {}", device_name(rel.device()));
  if (rel.rank() != 2 || heads < 1 || rel.cols() % heads != 0) {
    fail(kName, "rel: expected [R, N·D] with N={}, got {}", heads, rel.shape_text());
  }
  for (const Parameter* bias : {biases.content, biases.position}) {
    if (bias == nullptr || bias->size() == rel.cols()) continue;
    fail(kName, "{}: expected N·D={} numbers, got {}", bias->name, rel.cols(), bias->size());
  }
}

// v - u, [N·D].
std::vector<float> differences(std::int64_t width, const QueryBiases& biases) {
  const float *content = data_of(biases.content), *position = data_of(biases.position);
  std::vector<float> all(static_cast<std::size_t>(width));
  for (std::int64_t c = 0; c < width; ++c) {
    all[static_cast<std::size_t>(c)] = (position == nullptr ? 0 : position[c]) - (content == nullptr ? 0 : content[c]);
  }
  return all;
}

// dy [R, N]
void add_gradients(const Tensor& rel, const QueryBiases& biases, Gradient& drel, const Tensor& dy) {
  const std::int64_t width = rel.cols(), heads = dy.cols(), size = width / heads;
  const std::vector<float> by = differences(width, biases);
  float* to_rel = nullptr;
  if (drel.needed()) {
    const bool first = !drel.defined();
    const Tensor& own = drel.storage();
    if (first) own.zero();
    to_rel = own.data();
  }
  float* const to_position = biases.position == nullptr ? nullptr : biases.position->gradient().data();
  float* const to_content = biases.content == nullptr ? nullptr : biases.content->gradient().data();
  parallel_for(counting() ? 0 : width, [&](std::int64_t c) {
    // One component through all rows in order: the same sums for any number of threads.
    float sum = 0;
    for (std::int64_t r = 0; r < rel.rows(); ++r) {
      const float own = dy.data()[r * heads + c / size];
      sum += own * rel.data()[r * width + c];
      if (to_rel != nullptr) to_rel[r * width + c] += own * by[static_cast<std::size_t>(c)];
    }
    if (to_position != nullptr) to_position[c] += sum;
    if (to_content != nullptr) to_content[c] -= sum;
  });
}

}  // namespace

Var position_bias(Tape& tape, const Var& rel, std::int64_t heads, const QueryBiases& biases) {
  const Tensor rows = rel.value();
  check(rows, heads, biases);
  const std::int64_t width = rows.cols(), size = width / heads;
  const std::vector<float> by = differences(width, biases);
  Tensor y = tape.empty({rows.rows(), heads}, Purpose::activations, rows.device());
  parallel_for(counting() ? 0 : rows.rows(), [&](std::int64_t r) {
    for (std::int64_t n = 0; n < heads; ++n) {
      float sum = 0;
      for (std::int64_t c = n * size; c < (n + 1) * size; ++c) {
        sum += by[static_cast<std::size_t>(c)] * rows.data()[r * width + c];
      }
      y.data()[r * heads + n] = sum;
    }
  });
  Var result = made(tape, kName, std::move(y));
  if (!tape.recording()) return result;
  record(tape, kName, result,
         [rows, biases, slot = rel.gradient()](const Tensor& dy) { add_gradients(rows, biases, *slot, dy); });
  return result;
}

}  // namespace etc
