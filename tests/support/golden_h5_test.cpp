#include "tests/support/golden_h5.h"

#include <algorithm>
#include <array>

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

// The kinds that tests look for.
constexpr std::array kKinds = {"bert",     "etc",         "functions",    "fused_attention",
                               "masks",    "optimizer",   "relative_ids", "relative_transformer",
                               "schedule", "side_inputs", "train"};
// Parts of names that tests look for, among the files without a kind.
constexpr std::array kNames = {
    "dense_reference",       "glue_features",   "hotpotqa_decode",   "hotpotqa_edge_features",
    "hotpotqa_edge_records", "hotpotqa_eval",   "hotpotqa_features", "nq_decode",
    "nq_features",           "nq_metrics",      "openkp_decode",     "openkp_features",
    "openkp_metrics",        "punkt",           "squad_decode",      "squad_edge_records",
    "squad_features",        "tokenization",    "wikihop_decode",    "wikihop_edge_features",
    "wikihop_edge_records",  "wikihop_features"};

bool is_found(const std::filesystem::path& path) {
  if (path.extension() == ".h5") {
    const test::GoldenFile file(path);
    if (file.has_attribute("", "kind")) {
      const std::string kind = file.string_attribute("", "kind");
      return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
    }
  }
  const std::string name = path.filename().string();
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](const char* part) { return name.find(part) != std::string::npos; });
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

TEST_CASE("every golden file has a kind or a name by which a test finds it", "[golden]") {
  for (const auto& path : test::golden_files(".h5")) {
    INFO(path.string() << ": no test reads a file of this kind or name");
    CHECK(is_found(path));
  }
  // A JSON file may be something else than a case: a list of the files, for example.
  for (const auto& path : test::golden_files(".json")) {
    if (!is_found(path)) WARN(path.string() << ": no test reads a file of this name");
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

TEST_CASE("a golden file names the cases that hold nothing", "[support]") {
  const test::TemporaryFolder folder;
  {
    test::H5Edit edit(folder / "some.h5");
    edit.put_floats("/case/x", {1}, 4);
    edit.put_floats("/cases/full/x", {1}, 4);
    edit.put_floats("/cases/none/x", {1}, 4);
    edit.remove("/cases/none/x");
  }
  const test::GoldenFile file(folder / "some.h5");
  file.read<float>("case/x");
  file.read<float>("cases/full/x");
  CHECK_THROWS_WITH(file.require_all_read(), Catch::EndsWith("no test reads cases/none/"));
}
