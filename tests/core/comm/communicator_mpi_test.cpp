// The communicator over MPI with this process alone; tests/tasks/processes has several.
#include <sys/mman.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "etc_core/base/error.h"
#include "etc_core/comm/communicator.h"
#include "etc_core/comm/launch.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("a gather of more bytes than MPI can count is an error, not a part of them", "[comm]") {
  // As a number of 32 bits this size is 8. The pages are reserved and never touched.
  constexpr std::size_t kBytes = (std::size_t{1} << 32) + 8;
  void* const bytes = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(bytes != MAP_FAILED);
  {
    const std::unique_ptr<Communicator> alone = join_processes();
    REQUIRE(alone->gather("own") == std::vector<std::string>{"own"});
    REQUIRE_THROWS_WITH(alone->gather({static_cast<const char*>(bytes), kBytes}),
                        "communicator: gather: expected less than 2 GB in all, got 4294967304 bytes");
  }
  ::munmap(bytes, kBytes);
}
