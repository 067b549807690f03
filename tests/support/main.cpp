// Runs the tests; the exit status is Catch2's.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include "etc_core/base/log.h"

int main(int argc, char** argv) {
  etc::log::to_stderr();
  return Catch::Session().run(argc, argv);
}
