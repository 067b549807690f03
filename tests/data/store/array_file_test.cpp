#include "data/h5/array_file.h"

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"
#include "tests/support/mutate.h"
#include "tests/support/python.h"

using namespace etc;
using namespace etc::data;
using Catch::Contains;

namespace {

void write_example(const std::filesystem::path& path) {
  ArrayFileWriter file(path);
  file.create("outputs/long", {2, 3});
  file.create("outputs/layer_0/scores", {2, 1, 2});
  file.create("outputs/nothing", {2, 0, 4});
  const float rows[] = {1, 2, 3, 4, 5, 6};
  file.write_rows("outputs/long", 1, 1, rows + 3);
  file.write_rows("outputs/layer_0/scores", 0, 2, rows);
  file.write_rows("outputs/long", 0, 1, rows);
  file.write_rows("outputs/nothing", 0, 2, rows);
  file.finish();
}

}  // namespace

TEST_CASE("arrays are written row by row and read back, equal calls giving equal bytes", "[store]") {
  const test::TemporaryFolder folder;
  write_example(folder / "a.h5");
  write_example(folder / "b.h5");
  REQUIRE(read_file(folder / "a.h5") == read_file(folder / "b.h5"));
  const auto arrays =
      read_arrays(folder / "a.h5", "outputs/layer_0", {{"scores", true, true}, {"states", true, false}});
  REQUIRE(arrays.size() == 1);
  REQUIRE(arrays.at("scores").shape == std::vector<std::int64_t>{2, 1, 2});
  REQUIRE(arrays.at("scores").floats == std::vector<float>{1, 2, 3, 4});
  const test::GoldenFile file(folder / "a.h5");
  REQUIRE(file.read<float>("outputs/long").values == std::vector<float>{1, 2, 3, 4, 5, 6});
  REQUIRE(file.read<float>("outputs/nothing").shape == std::vector<std::int64_t>{2, 0, 4});
}

TEST_CASE("integers that floats cannot hold are written exactly", "[store]") {
  const test::TemporaryFolder folder;
  const std::int64_t counts[] = {(std::int64_t{1} << 24) + 1, -7, (std::int64_t{1} << 53) + 1};
  {
    ArrayFileWriter file(folder / "a.h5");
    file.create("counts", {3}, ArrayFileWriter::Numbers::integers);
    file.write_rows("counts", 1, 2, counts + 1);
    file.write_rows("counts", 0, 1, counts);
    file.finish();
  }
  const test::GoldenFile file(folder / "a.h5");
  REQUIRE(file.read<std::int64_t>("counts").values == std::vector<std::int64_t>(counts, counts + 3));
}

TEST_CASE("an array file that is not finished leaves nothing", "[store]") {
  const test::TemporaryFolder folder;
  {
    ArrayFileWriter file(folder / "a.h5");
    file.create("x", {1});
  }
  REQUIRE(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("integers of every width are read, and those beyond 32 bits refused", "[store]") {
  const test::TemporaryFolder folder;
  {
    test::H5Edit file(folder / "a.h5");
    file.put_integers("/in/u8", {0, 255}, 1, false);
    file.put_integers("/in/i16", {-300, 5}, 2, true, {2, 1}, {.big_endian = true});
    file.put_integers("/in/i64", {-5, 2147483647}, 8, true, {}, {.chunk = 1, .deflate = true});
    file.put_integers("/bad/u32", {4294967295}, 4, false);
    file.put_unwritten("/large/x", 1 << 30, 4096);
    file.put_scale_offset("/filter/x", std::vector<std::int64_t>(20, 1));
    file.put_soft_link("/link/x", "/in/u8");
    file.put_variable_strings("/text/x", {"a"});
  }
  const auto arrays = read_arrays(folder / "a.h5", "in", {{"u8"}, {"i16"}, {"i64"}});
  REQUIRE(arrays.at("u8").integers == std::vector<std::int32_t>{0, 255});
  REQUIRE(arrays.at("i16").integers == std::vector<std::int32_t>{-300, 5});
  REQUIRE(arrays.at("i16").shape == std::vector<std::int64_t>{2, 1});
  REQUIRE(arrays.at("i64").integers == std::vector<std::int32_t>{-5, 2147483647});
  const auto message = [&](const std::string& group, const std::string& name) -> std::string {
    try {
      read_arrays(folder / "a.h5", group, {{name, false, true}});
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  REQUIRE_THAT(message("bad", "u32"), Contains("a.h5:/bad/u32: expected values of 32 bits, got 4294967295"));
  REQUIRE_THAT(message("large", "x"), Contains("a.h5:/large/x: expected at most 0 elements in 0 stored bytes"));
  REQUIRE_THAT(message("filter", "x"), Contains("a.h5:/filter/x: expected the filters shuffle, deflate"));
  REQUIRE_THAT(message("link", "x"), Contains("a.h5:/link/x: expected an object of this file, got a soft link"));
  REQUIRE_THAT(message("text", "x"), Contains("a.h5:/text/x: expected integers"));
  REQUIRE_THAT(message("none", "x"), Contains("a.h5:/none: is missing"));
  test::write_file(folder / "b.h5", "not HDF5");
  REQUIRE_THROWS_WITH(read_arrays(folder / "b.h5", "in", {}), Contains("b.h5: cannot open"));
}

TEST_CASE("the arrays of a file are listed with their shapes", "[store]") {
  const test::TemporaryFolder folder;
  write_example(folder / "a.h5");
  const auto arrays = list_arrays(folder / "a.h5");
  REQUIRE(arrays.size() == 3);
  CHECK(arrays[0].path == "outputs/layer_0/scores");
  CHECK(arrays[0].shape == std::vector<std::int64_t>{2, 1, 2});
  CHECK(arrays[1].path == "outputs/long");
  CHECK(arrays[2].path == "outputs/nothing");
  CHECK(arrays[2].shape == std::vector<std::int64_t>{2, 0, 4});
  const auto message = [&](const std::string& name) -> std::string {
    try {
      list_arrays(folder / name);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  { test::H5Edit(folder / "link.h5").put_external_link("/x/y", folder / "a.h5", "/outputs"); }
  CHECK_THAT(message("link.h5"), Contains("link.h5:/x/y: expected an object of this file, got an external link"));
  { test::H5Edit(folder / "deep.h5").put_integers("/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/x", {1}); }
  CHECK_THAT(message("deep.h5"), Contains("groups are nested deeper than 16"));
  { test::H5Edit(folder / "large.h5").put_unwritten("/x", 1 << 30, 4096); }
  CHECK_THAT(message("large.h5"), Contains("large.h5:/x: expected at most 0 elements"));
  test::write_file(folder / "b.h5", "not HDF5");
  CHECK_THAT(message("b.h5"), Contains("b.h5: cannot open"));
}

namespace {

// Every mutant gives an Error or a list.
void list_mutants(std::uint64_t first_seed, std::uint64_t count) {
  const test::TemporaryFolder folder;
  write_example(folder / "good.h5");
  const std::string bytes = read_file(folder / "good.h5");
  std::uint64_t refused = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    CAPTURE(seed);
    test::write_file(folder / "bad.h5", test::mutate(bytes, seed));
    try {
      list_arrays(folder / "bad.h5");
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > count / 4);  // check that the mutator damages files
}

}  // namespace

TEST_CASE("damaged array files are listed or refused", "[store]") {
  list_mutants(0, 200);
}

TEST_CASE("many damaged array files are listed or refused", "[store][slow]") {
  list_mutants(1000, 5000);
}

TEST_CASE("h5py reads the arrays we write", "[store]") {
  const auto python = test::python_with("h5py, numpy");
  if (!python) return test::skip("no Python with h5py");
  const test::TemporaryFolder folder;
  write_example(folder / "a.h5");
  test::write_file(folder / "check.py",
                   "import sys, h5py\n"
                   "f = h5py.File(sys.argv[1])\n"
                   "assert f['outputs/long'][()].tolist() == [[1, 2, 3], [4, 5, 6]]\n"
                   "assert f['outputs/layer_0/scores'].shape == (2, 1, 2)\n"
                   "assert f['outputs/nothing'].shape == (2, 0, 4)\n");
  REQUIRE(test::run_python(*python, (folder / "check.py").string() + " " + (folder / "a.h5").string()) == 0);
}
