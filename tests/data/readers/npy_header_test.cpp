#include "data/readers/npy_header.h"

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"

namespace {

using Catch::Matchers::Contains;
using etc::data::NpyHeader;
using Shape = std::vector<std::int64_t>;

// A NumPy array of version 1 with this header and these bytes after it.
std::string npy(const std::string& header, std::size_t bytes) {
  std::string file = "\x93NUMPY\x01";
  file += '\0';
  file += static_cast<char>(header.size());
  file += '\0';
  return file + header + std::string(bytes, 'x');
}

const std::string kGoodHeader = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

NpyHeader read_npy(const std::string& bytes) {
  const etc::test::TemporaryFolder folder;
  etc::test::write_file(folder / "a.npy", bytes);
  return etc::data::read_npy_header(folder / "a.npy");
}

}  // namespace

TEST_CASE("headers of NumPy arrays are read as NumPy writes them", "[data]") {
  const NpyHeader columns = read_npy(npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }   \n", 48));
  CHECK(columns.type == "float64");
  CHECK(columns.column_major);
  CHECK(columns.shape == Shape{2, 3});
  CHECK(columns.values == 6);
  CHECK(columns.bytes == 48);
  const NpyHeader one = read_npy(npy("{'shape':(),'fortran_order':False,\"descr\":'>i2'}", 2));
  CHECK(one.type == "int16, big-endian");
  CHECK(one.shape.empty());
  CHECK(one.values == 1);
  const NpyHeader none =
      read_npy(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (0, 9223372036854775807), }", 0));
  CHECK(none.type == "bool");
  CHECK(none.values == 0);
  CHECK(read_npy(npy("{'descr': '<U5', 'fortran_order': False, 'shape': (3,), }", 60)).type == "text5");
  const std::string record = "[('a]', '<f4'), ('b', '<i4', (2,))]";
  const NpyHeader records = read_npy(npy("{'descr': " + record + ", 'fortran_order': False, 'shape': (2,), }", 24));
  CHECK(records.type == record);
  CHECK(records.value_bytes == 0);
  CHECK(records.bytes == 24);
}

TEST_CASE("what is no NumPy array is refused with what was expected", "[data]") {
  const auto refused = [&](const std::string& bytes, const std::string& part) {
    CAPTURE(bytes);
    REQUIRE_THROWS_WITH(read_npy(bytes), Contains("a.npy: ") && Contains(part));
  };
  refused("text", "expected the beginning of a NumPy array of 8 bytes, got 4: the file is cut off");
  refused("no NumPy array", "not a NumPy array: expected \\x93NUMPY");
  refused("\x93NUMPY\x04" + kGoodHeader, "expected format 1, 2 or 3 of NumPy arrays, got 4");
  refused(npy(kGoodHeader, 23),
          "expected 24 bytes for shape [2, 3] of float32, got 23: the file is cut off or damaged");
  refused(npy(kGoodHeader, 25), "expected 24 bytes");
  refused(npy(kGoodHeader.substr(0, 40), 0), "byte 40 of the header: expected ");
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }", 24), "expected a size of the shape");
  refused(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }", 24), "expected True or False");
  refused(npy("{'descr': '<f4', 'descr': '<f4', 'shape': (2, 3), }", 24), "expected each key once");
  refused(npy("{'descr': '<f4', 'shape': (2, 3), }", 24), "expected the keys descr, fortran_order and shape");
  refused(npy("{'descr': '<f4', 'order': True, 'shape': (2, 3), }", 24), "instead of the key \"order\"");
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 24),
          "more values than any file holds");
  refused(npy(kGoodHeader + "x", 24), "expected nothing after }");
  refused("\x93NUMPY\x02" + std::string(1, '\0') + "\xff\xff\xff\x7f", "expected a header of at most 1048576 bytes");
}

TEST_CASE("a truncated or damaged NumPy array is read or refused", "[data]") {
  const std::string array = npy(kGoodHeader, 24);
  for (std::size_t length = 0; length < array.size(); ++length) {
    CAPTURE(length);
    REQUIRE_THROWS_AS(read_npy(array.substr(0, length)), etc::Error);
  }
  int told = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    try {
      const NpyHeader header = read_npy(etc::test::mutate(array, seed));
      CHECK((header.value_bytes == 0 || header.values * header.value_bytes == header.bytes));
      ++told;
    } catch (const etc::Error& error) {
      CHECK_THAT(error.what(), Contains("a.npy: "));
      ++refused;
    }
  }
  CHECK(told > 0);
  CHECK(refused > 0);
}
