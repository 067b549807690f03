#include "tests/support/golden_h5.h"

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/h5_edit.h"

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

TEST_CASE("a golden file names the data sets and attributes that nothing has read", "[support]") {
  const test::TemporaryFolder folder;
  {
    test::H5Edit edit(folder / "some.h5");
    edit.put_floats("/case/x", {1}, 4);
    edit.put_floats("/case/y64", {1}, 8);
    edit.put_floats("/other/x", {1}, 4);
    edit.put_attribute("/case", "radius", 3);
    edit.put_attribute("/case/x", "unit", 1);
    edit.put_attribute("/", "kind", std::string("some"));
    edit.put_attribute("/", "steps", 5);
  }
  const test::GoldenFile file(folder / "some.h5");
  using Names = std::vector<std::string>;
  CHECK(file.unread() == Names{"@steps", "case/x", "case/x@unit", "case/y64", "case@radius", "other/x"});
  CHECK(file.unread("case", {{"*64", "twins"}}) == Names{"case/x", "case/x@unit", "case@radius"});
  CHECK_THROWS_WITH(file.require_all_read("/case/"),
                    Catch::EndsWith("no test reads case/x, case/x@unit, case/y64, case@radius"));
  file.read<float>("/case//x");
  file.int_attribute("case/", "radius");
  file.int_attribute("case/x", "unit");
  CHECK(file.unread("case") == Names{"case/y64"});
  CHECK_NOTHROW(file.require_all_read("case", {{"case/y64", "twin of y"}}));
  CHECK(file.unread() == Names{"@steps", "case/y64", "other/x"});
}
