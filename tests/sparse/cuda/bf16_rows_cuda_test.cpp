// Attention on rows of bf16, as products leave them: the bits of the same kernels on the same numbers in fp32, rounded.
#include <algorithm>
#include <cmath>
#include <vector>

#include "etc_core/base/bf16.h"
#include "sparse/cuda/register_cuda.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;

namespace {

// The numbers of a RowBuffer as bf16, at the same places, between zones that no kernel may touch.
class Bf16Rows {
 public:
  explicit Bf16Rows(const bench::RowBuffer& of) : stride_(of.stride), count_(of.count), width_(of.width) {
    for (std::int64_t i = 0; i < of.stride * of.count; ++i) all_.push_back({bf16_from_float(of.values[i])});
    for (std::int64_t row = 0; row < count_; ++row) {
      for (std::int64_t column = width_; column < stride_; ++column) all_[at(row, column)] = Bf16{kMark};
    }
  }
  sparse::Rows rows() const { return {nullptr, stride_, count_, all_.data()}; }
  sparse::MutableRows mutable_rows() { return {nullptr, stride_, count_, all_.data()}; }
  bool guards_intact() const {
    for (std::int64_t row = 0; row < count_; ++row) {
      for (std::int64_t column = width_; column < stride_; ++column) {
        if (all_[at(row, column)].bits != kMark) return false;
      }
    }
    return true;
  }
  std::vector<float> used() const {
    std::vector<float> values;
    for (std::int64_t row = 0; row < count_; ++row) {
      for (std::int64_t column = 0; column < width_; ++column)
        values.push_back(float_from_bf16(all_[at(row, column)].bits));
    }
    return values;
  }

 private:
  std::size_t at(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(row * stride_ + column);
  }
  static constexpr std::uint16_t kMark = 0x7abc;
  std::int64_t stride_, count_, width_;
  std::vector<Bf16> all_;
};

std::vector<float> used(const bench::RowBuffer& rows) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t column = 0; column < rows.width; ++column) values.push_back(rows.at(row, column));
  }
  return values;
}

std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = float_from_bf16(bf16_from_float(value));
  return values;
}

void round_in_place(bench::RowBuffer& rows) {
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t column = 0; column < rows.width; ++column) {
      float& value = rows.values[row * rows.stride + column];
      value = float_from_bf16(bf16_from_float(value));
    }
  }
}

std::vector<float> all_of(const Buffer<float>& buffer) {
  return {buffer.begin(), buffer.end()};
}

// A call on rows of fp32 whose numbers are bf16's.
AttentionProblem solved_in_fp32(const AttentionCase& c, Side side) {
  AttentionProblem p(c, std::make_shared<const Structure>(c), side);
  p.device = Device::cuda;
  for (bench::RowBuffer* rows : {&p.q, &p.k[0], &p.k[1], &p.v[0], &p.v[1], &p.dout}) round_in_place(*rows);
  p.forward();
  round_in_place(p.out);  // backward is to read the same
  p.backward();
  return p;
}

void check_bf16_rows(const AttentionCase& c, Side side) {
  CAPTURE(c.name, side == Side::long_side);
  const AttentionProblem expected = solved_in_fp32(c, side);
  AttentionProblem own(c, expected.structure, side);  // for what stays fp32
  const Bf16Rows q(expected.q), k[2] = {Bf16Rows(expected.k[0]), Bf16Rows(expected.k[1])};
  const Bf16Rows v[2] = {Bf16Rows(expected.v[0]), Bf16Rows(expected.v[1])}, dout(expected.dout);
  Bf16Rows out(own.out), dq(own.dq), dk[2] = {Bf16Rows(own.dk[0]), Bf16Rows(own.dk[1])};
  Bf16Rows dv[2] = {Bf16Rows(own.dv[0]), Bf16Rows(own.dv[1])};

  sparse::AttentionInputs in = own.inputs();
  in.type = ElementType::bf16;
  in.q = q.rows();
  for (int t = 0; t < 2; ++t) in.keys[t] = {k[t].rows(), v[t].rows()};
  REQUIRE(sparse::row_type(Device::cuda, in) == ElementType::bf16);
  Buffer<std::uint8_t> forward(sparse::attention_forward_scratch_bytes(Device::cuda, in), Purpose::scratch);
  sparse::attention_forward(Device::cuda, {in, {}, out.mutable_rows(), own.lse.data(), forward.data()});
  CHECK(same_bits(out.used(), used(expected.out)));
  CHECK(same_bits(all_of(own.lse), all_of(expected.lse)));

  Buffer<std::uint8_t> backward(sparse::attention_backward_scratch_bytes(Device::cuda, in), Purpose::scratch);
  sparse::RelativeTableGradients tables;
  if (in.relative.vectors != nullptr) tables.vectors = own.drel.data();
  if (in.relative.biases != nullptr) tables.biases = own.drel_bias.data();
  sparse::AttentionBackward args;
  args.inputs = in;
  args.out = out.rows();
  args.lse = own.lse.data();
  args.dout = dout.rows();
  args.dq = dq.mutable_rows();
  for (int t = 0; t < 2; ++t) args.dkeys[t] = {dk[t].mutable_rows(), dv[t].mutable_rows()};
  args.drelative = tables;
  args.scratch = backward.data();
  sparse::attention_backward(Device::cuda, args);
  for (int t = 0; t < 2; ++t) {
    CHECK(same_bits(dk[t].used(), rounded(used(expected.dk[t]))));
    CHECK(same_bits(dv[t].used(), rounded(used(expected.dv[t]))));
  }
  // With relative terms dq is rounded before and after their share is added.
  const std::vector<float> exact = used(expected.dq);
  if (in.relative.vectors == nullptr) {
    CHECK(same_bits(dq.used(), rounded(exact)));
  } else {
    double largest = 0;
    for (const float value : exact) largest = std::max(largest, std::abs(static_cast<double>(value)));
    CHECK(near_all("dq", dq.used(), {exact.begin(), exact.end()}, 0x1p-8 * largest, 0x1p-8));
  }
  CHECK(same_bits(all_of(own.drel), all_of(expected.drel)));
  CHECK(same_bits(all_of(own.drel_bias), all_of(expected.drel_bias)));
  for (const Bf16Rows* rows : {&out, &dq, &dk[0], &dk[1], &dv[0], &dv[1]}) CHECK(rows->guards_intact());
}

}  // namespace

TEST_CASE("emulated attention on rows of bf16 has the bits of rows of fp32, rounded", "[sparse][cuda]") {
  sparse::register_cuda_kernels();
  const OneThread one_thread;
  // 600 long tokens: keys of global queries are split, and so are the queries that see a global key.
  AttentionCase cases[] = {
      {"split", {9, 600}, {30, 20}, 9, 2, 16, 12, Labels::document, 1.0f, 0.2f},
      {"scattered", {75, 33}, {17, 40}, 11, 3, 32, 12, Labels::scattered, 1.0f, 0.0f, 8},
      {"no labels", {40}, {5}, 7, 1, 128, 0, Labels::none, 1.0f, 0.1f},
      {"biases", {40, 0, 3}, {5, 1, 0}, 7, 2, 32, 12, Labels::document},
  };
  cases[3].parts.vectors = false;
  for (AttentionCase& c : cases) {
    c.compute = ComputeType::bf16;
    for (Side side : {Side::long_side, Side::global_side}) check_bf16_rows(c, side);
  }
}

TEST_CASE("rows of bf16 are for devices and tables whose kernels read them", "[sparse][cuda]") {
  sparse::register_cuda_kernels();
  AttentionCase c{"one", {20}, {3}, 4, 1, 16, 12, Labels::document};
  c.compute = ComputeType::bf16;
  const auto problem_of = [](const AttentionCase& of) {
    return AttentionProblem(of, std::make_shared<const Structure>(of), Side::long_side);
  };
  CHECK(sparse::row_type(Device::cuda, problem_of(c).inputs()) == ElementType::bf16);
  CHECK(sparse::row_type(Device::cpu, problem_of(c).inputs()) == ElementType::fp32);
  AttentionCase fp32 = c;
  fp32.compute = ComputeType::fp32;
  CHECK(sparse::row_type(Device::cuda, problem_of(fp32).inputs()) == ElementType::fp32);
  AttentionCase odd = c;
  odd.head_size = 24;  // between two widths
  CHECK(sparse::row_type(Device::cuda, problem_of(odd).inputs()) == ElementType::fp32);
  AttentionCase values = c;
  values.parts.value_vectors = true;
  CHECK(sparse::row_type(Device::cuda, problem_of(values).inputs()) == ElementType::fp32);

  AttentionProblem p = problem_of(c);
  sparse::AttentionInputs in = p.inputs();
  in.type = ElementType::bf16;
  const sparse::AttentionForward args{in, {}, p.out.mutable_rows(), p.lse.data(), nullptr};
  CHECK_THROWS_WITH(sparse::attention_forward(Device::cpu, args), Contains("expected q, k and v in fp32 on cpu"));
  CHECK_THROWS_WITH(sparse::attention_forward(Device::cuda, args),
                    Contains("q: expected numbers in bf16 like those of the call, got the other type"));
}
