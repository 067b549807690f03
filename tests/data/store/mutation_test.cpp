#include <cstdint>
#include <filesystem>

#include "etc_core/base/files.h"
#include "tests/data/store/samples.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"

using namespace etc;
using namespace etc::data;
using namespace etc::test;

namespace {

// Opens mutants of a small data set and reads all of those that open: an Error or a valid result, nothing else.
void read_mutants(std::uint64_t first_seed, std::uint64_t count) {
  const TemporaryFolder folder;
  write_samples(folder / "good.h5", 12);
  const std::string bytes = read_file(folder / "good.h5");
  std::uint64_t opened = 0, refused = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    CAPTURE(seed);
    write_file_atomically(folder / "bad.h5", mutate(bytes, seed));
    try {
      const DatasetReader reader({folder / "bad.h5"}, sample_schema());
      for (std::int64_t i = 0; i < reader.size(); ++i) reader.read(i);
      reader.faults();
      ++opened;
    } catch (const Error&) {
      ++refused;
    }
  }
  CAPTURE(opened, refused);
  CHECK(opened + refused == count);
  CHECK(refused > count / 4);  // the mutator does damage files
}

}  // namespace

TEST_CASE("damaged data sets give errors or valid results", "[data][store]") {
  read_mutants(0, 200);
}

TEST_CASE("many damaged data sets give errors or valid results", "[data][store][slow]") {
  read_mutants(1000, 5000);
}
