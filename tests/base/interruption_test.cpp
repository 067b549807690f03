// Interrupting work of the library from the calling program.
#include "etc_core/base/interruption.h"

#include <thread>

#include "etc_core/base/error.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("work asks its thread's watch whether to go on, ten times a second at most", "[base]") {
  int asked = 0;
  check_interruption();  // no watch: does nothing
  {
    const InterruptionWatch watch([&] {
      if (++asked == 2) throw Interrupted("stop");
    });
    check_interruption();
    CHECK(asked == 0);
    std::this_thread::sleep_for(InterruptionWatch::kPause);
    std::thread([] { check_interruption(); }).join();
    CHECK(asked == 0);
    check_interruption();
    check_interruption();
    CHECK(asked == 1);
    std::this_thread::sleep_for(InterruptionWatch::kPause);
    CHECK_THROWS_AS(check_interruption(), Interrupted);
  }
  check_interruption();
  CHECK(asked == 2);
}

TEST_CASE("the latest watch of a thread is asked, and the one before it again after that", "[base]") {
  int outer = 0, inner = 0;
  const InterruptionWatch first([&] { ++outer; });
  {
    const InterruptionWatch second([&] { ++inner; });
    std::this_thread::sleep_for(InterruptionWatch::kPause);
    check_interruption();
  }
  check_interruption();
  CHECK(inner == 1);
  CHECK(outer == 1);
}
