// A short program may copy memoised values many times, so copies are counted and limited.
#include <string>

#include "etc_core/checkpoint/convert/pickle/pickle.h"
#include "tests/support/catch.h"

using namespace etc::convert;
using Catch::Matchers::Contains;

namespace {

std::string repeated(const std::string& operations, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += operations;
  return all;
}

std::string little_endian(std::uint32_t number) {
  return {static_cast<char>(number & 255), static_cast<char>(number >> 8 & 255), static_cast<char>(number >> 16 & 255),
          static_cast<char>(number >> 24)};
}

// ("storage", FloatStorage, a name of `name_bytes` bytes, "cpu", 1), memoised as 1
std::string storage_id(std::uint32_t name_bytes) {
  return "(X" + little_endian(7) + "storage" + "ctorch\nFloatStorage\nX" + little_endian(name_bytes) +
         std::string(name_bytes, 'n') + "X" + little_endian(3) + "cpuK\1tq\1";
}

}  // namespace

TEST_CASE("a list that is made a dictionary of again and again is refused", "[convert]") {
  const std::string pair = "X" + little_endian(1) + "aN\x86q\1";
  const auto program = [&](int items, int copies) {
    return "\x80\2ccollections\nOrderedDict\nq\2" + pair + "](" + repeated("h\1", items) + "e\x85q\3" +
           repeated("h\2h\3R", copies) + ".";
  };
  PickleMachine small, large;
  CHECK_THROWS_WITH(large.run(program(100'000, 2000), "file"), Contains("items in lists and dictionaries"));
  CHECK(small.run(program(100, 20), "file").items.size() == 200);
}

TEST_CASE("a storage with a long name that is opened again and again is refused", "[convert]") {
  const auto program = [&](std::uint32_t name_bytes, int copies) {
    return "\x80\2" + storage_id(name_bytes) + repeated("h\1Q", copies) + ".";
  };
  PickleMachine small, large;
  CHECK_THROWS_WITH(large.run(program(200'000, 10'000), "file"), Contains("bytes of storages' names and sizes"));
  CHECK(small.run(program(20, 10), "file").view->storage == std::string(20, 'n'));
}
