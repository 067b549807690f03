#include "etc_core/ops/position_bias.h"

#include "etc_core/ops/register.h"
#include "tests/reference/position_bias.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

Reals negative(Reals values) {
  for (double& value : values) value = -value;
  return values;
}

// Some heads and sizes, with and without each of the two vectors.
struct Case {
  std::int64_t rows, heads, head_size;
  bool content, position;
};
constexpr Case kCases[] = {{1, 1, 1, true, true},
                           {5, 2, 3, true, true},
                           {33, 4, 16, false, true},
                           {64, 3, 20, true, false},
                           {130, 2, 64, true, true}};

}  // namespace

TEST_CASE("position biases and their gradients agree with the reference in double", "[core][ops]") {
  ops::register_cpu_ops();
  for (const auto& [rows, heads, head_size, content, position] : kCases) {
    CAPTURE(rows, heads, head_size, content, position);
    const std::int64_t width = heads * head_size;
    const auto rel = random_floats(rows * width, 1), dy = random_floats(rows * heads, 4);
    const auto u = content ? random_floats(width, 2) : std::vector<float>{};
    const auto v = position ? random_floats(width, 3) : std::vector<float>{};
    const float* u_data = content ? u.data() : nullptr;
    const float* v_data = position ? v.data() : nullptr;
    Guarded y(std::vector<float>(dy.size(), 7.0f));
    ops::position_bias(Device::cpu, {.rows = rows,
                                     .heads = heads,
                                     .head_size = head_size,
                                     .rel = rel.data(),
                                     .content = u_data,
                                     .position = v_data,
                                     .y = y.data()});
    CHECK(y.guards_intact());
    const Reals expected = reference_position_bias(heads, head_size, to_double(rel), to_double(u), to_double(v));
    CHECK(near_all("y", y.values(), expected, 1e-5, 1e-5));

    // Gradients are added to initial values.
    Guarded drel(std::vector<float>(rel.size(), 1.0f));
    Guarded du(std::vector<float>(static_cast<std::size_t>(width), 1.0f));
    Guarded dv(std::vector<float>(static_cast<std::size_t>(width), 1.0f));
    ops::PositionBiasBackward backward{.rows = rows, .heads = heads, .head_size = head_size};
    backward.rel = rel.data();
    backward.content = u_data;
    backward.position = v_data;
    backward.dy = dy.data();
    backward.drel = drel.data();
    backward.dcontent = content ? du.data() : nullptr;
    backward.dposition = position ? dv.data() : nullptr;
    ops::position_bias_backward(Device::cpu, backward);
    CHECK((drel.guards_intact() && du.guards_intact() && dv.guards_intact()));
    const auto gradients =
        reference_position_bias_backward(heads, head_size, to_double(rel), to_double(u), to_double(v), to_double(dy));
    const auto plus_one = [](Reals values) {
      for (double& value : values) value += 1;
      return values;
    };
    CHECK(near_all("drel", drel.values(), plus_one(gradients.drel), 1e-5, 1e-5));
    if (content) CHECK(near_all("du", du.values(), plus_one(negative(gradients.dv)), 2e-5, 1e-5));
    if (position) CHECK(near_all("dv", dv.values(), plus_one(gradients.dv), 2e-5, 1e-5));
  }
}
