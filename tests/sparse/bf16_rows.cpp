#include "tests/sparse/bf16_rows.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bench/cases/bf16_rows.h"
#include "tests/support/numbers.h"

namespace etc::test {

namespace {

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

// Equal up to one rounding of each number and one of the largest number.
bool near_rows(const std::vector<float>& got, const std::vector<float>& exact) {
  double largest = 0;
  for (const float value : exact) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double off = std::abs(static_cast<double>(got[i]) - exact[i]);
    if (!(off <= 0x1p-8 * (largest + std::abs(static_cast<double>(exact[i]))))) return false;
  }
  return got.size() == exact.size();
}

// A call on fp32 rows whose numbers are exactly representable in bf16.
AttentionProblem solved_in_fp32(const AttentionCase& c, Side side, Device device) {
  AttentionProblem p(c, std::make_shared<const Structure>(c), side);
  p.device = device;
  for (bench::RowBuffer* rows : {&p.q, &p.k[0], &p.k[1], &p.v[0], &p.v[1], &p.dout}) round_in_place(*rows);
  p.forward();
  round_in_place(p.out);  // so that backward reads the same numbers
  p.backward();
  return p;
}

}  // namespace

std::string different_in_bf16_rows(const AttentionCase& c, Side side, Device device) {
  const AttentionProblem expected = solved_in_fp32(c, side, device);
  bench::Bf16Problem own(expected);
  if (sparse::row_type(device, own.inputs()) != ElementType::bf16) return "row_type()";
  own.forward();
  own.backward();
  std::string different;
  const auto compare = [&](const char* name, bool same) {
    if (!same) different += std::string(different.empty() ? "" : ", ") + name;
  };
  const auto rows = [&](const char* name, const bench::Bf16Rows& got, const bench::RowBuffer& exact) {
    compare(name, same_bits(got.used(), rounded(used(exact))) && got.guards_intact());
  };
  rows("out", own.out, expected.out);
  rows("dk[0]", own.dk[0], expected.dk[0]);
  rows("dk[1]", own.dk[1], expected.dk[1]);
  rows("dv[0]", own.dv[0], expected.dv[0]);
  rows("dv[1]", own.dv[1], expected.dv[1]);
  // On a GPU dq is rounded both before and after the contribution of relative terms is added.
  if (device == Device::cpu || own.inputs().relative.vectors == nullptr) {
    rows("dq", own.dq, expected.dq);
  } else {
    compare("dq", near_rows(own.dq.used(), used(expected.dq)) && own.dq.guards_intact());
  }
  const AttentionProblem& tables = own.problem;
  compare("lse", same_bits(all_of(tables.lse), all_of(expected.lse)));
  compare("drel", same_bits(all_of(tables.drel), all_of(expected.drel)));
  compare("drel_bias", same_bits(all_of(tables.drel_bias), all_of(expected.drel_bias)));
  compare("dfactor", same_bits(all_of(tables.dfactor), all_of(expected.dfactor)));
  return different;
}

}  // namespace etc::test
