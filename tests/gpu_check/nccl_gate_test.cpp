// Checks which NCCL functions the compiled link between GPUs calls. Needs NCCL's and CUDA's headers, but no device.
#include <string>

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;

TEST_CASE("the link between GPUs compiles, sends and receives, and leaves all sums to the tree", "[comm][gate]") {
  const std::string object = ETC_NCCL_OBJECT;
  if (object.empty()) return test::skip("NCCL's or CUDA's headers are not installed");
  const std::string code = read_file(object);
  for (const char* call : {"ncclSend", "ncclRecv", "ncclGroupStart", "ncclCommInitRank"}) {
    CAPTURE(call);
    CHECK(code.find(call) != std::string::npos);
  }
  for (const char* sum : {"ncclAllReduce", "ncclReduce"}) {
    CAPTURE(sum);
    CHECK(code.find(sum) == std::string::npos);
  }
}
