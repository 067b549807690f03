#include "etc_core/checkpoint/convert/report.h"

#include <fmt/format.h>

#include "tests/support/catch.h"

using namespace etc::convert;

TEST_CASE("a report of many tensors has a line for each kind, in the order of their first ones", "[convert]") {
  constexpr int kKinds = 20'000, kLayers = 3;
  ConversionReport report;
  std::string expected = "source: m (test)\ncopied: 0 tensors, 0 numbers\nleft out: 60000 tensors\n";
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int kind = 0; kind < kKinds; ++kind) {
      report.left_out.push_back({fmt::format("layer_{}/part_{}", layer, kind), "F32 [1]", "unknown"});
    }
  }
  for (int kind = 0; kind < kKinds; ++kind) expected += fmt::format("  layer_*/part_{} F32 [1] x3: unknown\n", kind);
  report.source = "m";
  report.kind = "test";
  CHECK((report.text() == expected));
}
