// Device values that the host checks later, when it next reads from the device.
#include "etc_core/base/cuda/late_checks.h"

#include "etc_core/base/cuda/device_array.h"
#include "etc_core/base/error.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("late checks see the numbers of their moment, in order, when the host next reads from the device", "[simt]") {
  simt::provide_memory();
  Bytes device = simt::device_bytes(2 * sizeof(std::int32_t), Purpose::scratch);
  auto* const values = static_cast<std::int32_t*>(device.data());
  const auto set = [&](std::int32_t first) {
    const std::int32_t numbers[] = {first, first + 1};
    simt::copy_to_device(values, numbers, sizeof numbers);
  };
  const auto read = [&] {
    std::int32_t number = 0;
    simt::copy_to_host(&number, values, sizeof number);
    return number;
  };
  std::vector<std::int32_t> seen;
  const auto note = [&](const auto& now) { seen.insert(seen.end(), now.begin(), now.end()); };
  set(10);
  simt::check_later(values, note);
  set(20);
  simt::check_later(values, note);
  set(30);
  CHECK(seen.empty());
  CHECK(read() == 30);
  CHECK(seen == std::vector<std::int32_t>{10, 11, 20, 21});
  CHECK(read() == 30);
  CHECK(seen.size() == 4);  // once

  simt::check_later(values, [](const auto&) { fail("check", "not good"); });
  simt::check_later(values, note);
  CHECK_THROWS_WITH(read(), "check: not good");
  CHECK(read() == 30);
  CHECK(seen.size() == 4);  // cancelled

  for (int i = 0; i < 2500; ++i) simt::check_later(values, note);  // more than can be pending: some run early
  CHECK(seen.size() > 4);
  read();
  CHECK(seen.size() == 4 + 2 * 2500);
}
