// Generated GLUE rows: what they claim, their equal bytes, what is refused.
#include "data/sample/glue_sample.h"

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;

TEST_CASE("a generated claim stands in the text where it is entailed, and there alone", "[glue]") {
  data::GlueSampleOptions options;
  options.subjects = 3;
  std::int64_t entailed = 0;
  for (std::int64_t i = 0; i < 300; ++i) {
    const std::string row = data::glue_sample_row(options, "dev", i);
    CAPTURE(row);
    const std::size_t text = row.find('\t') + 1, claim = row.find('\t', text) + 1, label = row.find('\t', claim) + 1;
    const std::string said = row.substr(text, claim - text - 1), claimed = row.substr(claim, label - claim - 1);
    const bool stands = said.find(claimed) != std::string::npos;
    CHECK(row.substr(label) == (stands ? "entailment" : "not_entailment"));
    entailed += stands ? 1 : 0;
    // Of a wrong claim every word stands in the text all the same.
    const std::string ruler = claimed.substr(claimed.rfind(' '));
    CHECK(said.find(ruler) != std::string::npos);
  }
  CHECK(entailed > 120);
  CHECK(entailed < 180);
}

TEST_CASE("equal options give equal GLUE files", "[glue]") {
  const test::TemporaryFolder folder;
  data::write_glue_sample({.records = 10}, folder / "a");
  data::write_glue_sample({.records = 10}, folder / "b");
  for (const char* name : {"train.tsv", "dev.tsv", "vocab.txt"}) {
    CHECK(read_file(folder / "a" / name) == read_file(folder / "b" / name));
  }
  CHECK_THROWS_WITH(data::write_glue_sample({.records = 0}, folder.path()), Catch::Contains("--records"));
  CHECK_THROWS_WITH(data::write_glue_sample({.subjects = 7}, folder.path()), Catch::Contains("--subjects"));
}
