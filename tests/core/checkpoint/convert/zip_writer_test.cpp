// Zip files written by this program, read by it and by Python.
#include "etc_core/checkpoint/convert/pickle/zip_writer.h"

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/python.h"

using namespace etc;
using convert::ZipContents;

TEST_CASE("stored members are read back, by another program too", "[convert]") {
  const test::TemporaryFolder folder;
  const ZipContents contents = {{"a.tsv", "index\tprediction\n"}, {"empty", ""}, {"\u00e9", std::string(100000, 'x')}};
  convert::write_stored_zip(folder / "z.zip", contents);
  CHECK(convert::read_zip(folder / "z.zip") == contents);
  convert::write_stored_zip(folder / "again.zip", contents);
  CHECK(read_file(folder / "z.zip") == read_file(folder / "again.zip"));
  convert::write_stored_zip(folder / "none.zip", {});
  CHECK(convert::read_zip(folder / "none.zip").empty());
  const auto python = test::python_with("zipfile");
  if (!python) return test::skip("no Python");
  test::write_file(folder / "check.py",
                   "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\n"
                   "sys.exit(z.testzip() is not None or z.namelist() != ['a.tsv', 'empty', '\\u00e9'])\n");
  CHECK(test::run_python(*python, (folder / "check.py").string() + " " + (folder / "z.zip").string()) == 0);
}
