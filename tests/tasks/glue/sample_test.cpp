// Generated GLUE rows: their contents, equal bytes for equal seeds, refused options.
#include "data/sample/glue_sample.h"

#include <set>

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;

TEST_CASE("the last clause of a generated sentence says its label, and its word alone three times in four", "[glue]") {
  const std::set<std::string> good = {"bright", "famous", "green", "quiet"};
  std::int64_t praised = 0, good_words = 0, rows = 400;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::string row = data::glue_sample_row({}, "dev", i);
    CAPTURE(row);
    const std::size_t end = row.find(" .\t");
    const std::string sentence = row.substr(0, end), trait = sentence.substr(sentence.rfind(' ') + 1);
    const std::string before = sentence.substr(0, sentence.rfind(' '));
    const bool negated = before.ends_with(" not"), praises = good.contains(trait) != negated;
    CHECK(row.substr(end + 3) == (praises ? "1" : "0"));
    praised += praises ? 1 : 0;
    good_words += good.contains(trait) == praises ? 1 : 0;
  }
  CHECK(praised > rows * 2 / 5);
  CHECK(praised < rows * 3 / 5);
  CHECK(good_words > rows * 13 / 20);
  CHECK(good_words < rows * 17 / 20);
}

TEST_CASE("equal options give equal GLUE files", "[glue]") {
  const test::TemporaryFolder folder;
  data::write_glue_sample({.records = 10}, folder / "a");
  data::write_glue_sample({.records = 10}, folder / "b");
  for (const char* name : {"train.tsv", "dev.tsv", "vocab.txt"}) {
    CHECK(read_file(folder / "a" / name) == read_file(folder / "b" / name));
  }
  CHECK_THROWS_WITH(data::write_glue_sample({.records = 0}, folder.path()), Catch::Contains("--records"));
  CHECK_THROWS_WITH(data::write_glue_sample({.clauses = 7}, folder.path()), Catch::Contains("--clauses"));
}
