// Files of translations scored: keys, several references, the papers' forms, a baseline, and faults of files.
#include "tasks/translation/score.h"

#include <cmath>

#include "etc_core/base/error.h"
#include "tasks/task_kind.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"

namespace etc::test {
namespace {

using namespace etc::translation;

struct Files {
  TemporaryFolder folder;
  Files() {
    write("h", "The well-known cat sat on the mat .\nIt was not so .\n");
    write("r", "The well-known cat is on the mat .\nIt was so .\n");
    write("r2", "A cat sat on the mat .\nIt was not so .\n");
  }
  void write(const std::string& name, const std::string& bytes) const { test::write_file(folder / name, bytes); }
  Json score(const std::vector<std::string>& gold, const ScoreOptions& options = {}) const {
    std::vector<std::filesystem::path> paths;
    for (const auto& name : gold) paths.push_back(folder / name);
    return score_files(folder / "h", paths, options);
  }
};

TEST_CASE("a file of translations is scored with its signature and brevity penalty", "[translation]") {
  const Files files;
  const Json one = files.score({"r"});
  CHECK(one["segments"] == 2);
  CHECK(one["system_length"] == 13);
  CHECK(one["reference_length"] == 12);
  CHECK(one["brevity_penalty"] == 1.0);
  const std::string signature = one["signature"];
  CHECK(signature.starts_with("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:etc-"));
  const Json two = files.score({"r", "r2"});
  CHECK(two["metrics"]["bleu"].get<double>() > one["metrics"]["bleu"].get<double>());
  CHECK(two["signature"].get<std::string>().starts_with("nrefs:2|"));
}

TEST_CASE("keys change words, case and smoothing, and the papers' forms are told apart", "[translation]") {
  const Files files;
  const auto with = [&](const Json& keys) { return files.score({"r"}, {keys, {}}); };
  CHECK(with({{"bleu_tokenize", "char"}})["system_length"] == 39);
  CHECK(with({{"bleu_lowercase", true}})["signature"].get<std::string>().find("case:lc") != std::string::npos);
  CHECK(with({{"bleu_smooth", "floor"}, {"bleu_smooth_value", 0.5}})["signature"].get<std::string>().find(
            "smooth:floor[0.50]") != std::string::npos);
  const Json forms = with({{"bleu_paper_forms", true}})["metrics"];
  CHECK(forms["tokenised"] == forms["bleu"]);  // nothing to smooth here
  CHECK(forms["compound_split"].get<double>() > forms["tokenised"].get<double>());
  CHECK_THROWS_AS(with({{"bleu_tokenize", "moses"}}), UsageError);
}

TEST_CASE("in the papers' forms a reference's unknown word matches nothing, though 13a cuts it", "[translation]") {
  const Files files;
  files.write("h", "a b <unk> d e f g h\n");
  files.write("r", "a b <unk> d e f g h\n");
  const Json forms = files.score({"r"}, {{{"bleu_paper_forms", true}}, {}})["metrics"];
  CHECK(forms["bleu"].get<double>() == Approx(100));
  // Precisions 7/8, 5/7, 3/6, 2/5 of the eight words.
  CHECK(forms["tokenised"].get<double>() == Approx(59.460356));
  CHECK(forms["compound_split"] == forms["tokenised"]);
  files.write("h", "<unk> <unk> a b c d\n");
  files.write("r", "<unk> <unk>. a b c d\n");
  // Of six words: 4/6, 3/5, 2/4, 1/3, and the reference has one word more.
  const Json neighbours = files.score({"r"}, {{{"bleu_paper_forms", true}}, {}})["metrics"];
  CHECK(neighbours["tokenised"].get<double>() == Approx(100 * std::exp(-1.0 / 6) * std::pow(1.0 / 15, 0.25)));
}

TEST_CASE("a baseline is compared by paired bootstrap", "[translation]") {
  const Files files;
  const Json scores = files.score({"r"}, {Json::object(), files.folder / "r"});
  CHECK(scores["baseline_bleu"].get<double>() == Approx(100));
  CHECK(scores["difference"].get<double>() < 0);
  CHECK(scores["difference_low"].get<double>() <= scores["difference_high"].get<double>());
  CHECK(scores["resamples"] == 1000);
  files.write("short", "one\n");
  CHECK_THROWS_WITH(files.score({"r"}, {Json::object(), files.folder / "short"}),
                    Catch::Contains("expected as many lines as") && Catch::Contains(": 2, got 1"));
}

TEST_CASE("files that cannot be scored are errors with file and line", "[translation]") {
  const Files files;
  files.write("short", "one\n");
  CHECK_THROWS_WITH(files.score({"r", "short"}),
                    Catch::Contains("short: expected as many lines as") && Catch::Contains("h has: 2, got 1"));
  files.write("bad", "one\nt\xffo\n");
  CHECK_THROWS_WITH(files.score({"bad"}), Catch::Contains("bad: line 2: byte 1 is not UTF-8"));
  CHECK_THROWS_AS(files.score({"missing"}), Error);
  const std::string packed = gzip(std::string(5000, 'x') + "\n");
  files.write("cut", packed.substr(0, packed.size() - 6));
  CHECK_THROWS_AS(files.score({"cut"}), Error);
  files.write("h", "");
  files.write("r", "");
  CHECK_THROWS_WITH(files.score({"r"}), Catch::Contains("expected at least one line to score"));
}

}  // namespace
}  // namespace etc::test
