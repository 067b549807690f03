#include "tests/support/golden_h5.h"

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;

namespace {

// Reads every data set and attribute below a group; counts the data sets.
int read_everything(const test::GoldenFile& file, const std::string& group) {
  int count = 0;
  for (const std::string& name : file.data_sets(group)) {
    const std::string path = group + "/" + name;
    try {
      file.read<double>(path);
    } catch (const Error&) {
      file.read_strings(path);  // neither numbers nor strings: this throws, and the test fails
    }
    ++count;
  }
  for (const std::string& name : file.groups(group)) count += read_everything(file, group + "/" + name);
  return count;
}

}  // namespace

TEST_CASE("every object of every golden HDF5 file can be read", "[golden]") {
  const auto files = test::golden_files(".h5");
  if (files.empty()) return test::skip("no golden files");
  for (const auto& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path);
    REQUIRE(read_everything(file, "") > 0);
    for (const std::string& name : file.attributes("")) {
      CAPTURE(name);
      try {
        file.real_attribute("", name);
      } catch (const Error&) {
        file.string_attribute("", name);
      }
    }
  }
}

TEST_CASE("a golden file names itself and the object it lacks", "[support]") {
  const test::TemporaryFolder folder;
  REQUIRE_THROWS_WITH(test::GoldenFile(folder / "none.h5"), Catch::Contains("none.h5: cannot open as HDF5"));
}
