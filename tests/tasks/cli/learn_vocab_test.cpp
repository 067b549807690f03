// `etc prepare --learn-vocab` and `--task pretrain` from the user's point of view.
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

using namespace etc;

namespace {

using Words = std::vector<std::string>;

struct VocabularyPlace {
  test::TemporaryFolder folder;

  VocabularyPlace() {
    REQUIRE(run({"sample", "--task", "pretrain", "--records", "60", "--output", path("sample")}).code == 0);
  }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  test::Result run(const Words& words, const std::string& input = "") const {
    return test::run_program(words, folder.path(), input);
  }
};

}  // namespace

TEST_CASE("a vocabulary is learned from a text, and the text prepared with it", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const VocabularyPlace place;
  const std::string train = place.path("sample/train.txt");
  const test::Result learned =
      place.run({"prepare", "--learn-vocab", "300", "--input", train, "--output", place.path("vocab.txt")});
  INFO(learned.err);
  REQUIRE(learned.code == 0);
  CHECK_THAT(learned.err, Catch::Contains("300 pieces learned from 1440 texts"));
  const Words prepare = {"prepare", "--task",  "pretrain",
                         "--split", "train",   "--max-seq-length",
                         "64",      "--vocab", place.path("vocab.txt")};
  for (const char* objective : {"mlm_nsp", "mlm", "mlm_cpc"}) {
    CAPTURE(objective);
    Words words = prepare;
    words.insert(words.end(),
                 {"--objective", objective, "--dupe-factor", "2", "--input", train, "--output", place.path("out.h5")});
    const test::Result result = place.run(words);
    INFO(result.err);
    CHECK(result.code == 0);
    CHECK_THAT(result.out, Catch::Contains("source records: 60"));
  }
  // Standard input with the last objective again gives the same examples.
  Words words = prepare;
  words.insert(words.end(),
               {"--objective", "mlm_cpc", "--dupe-factor", "2", "--input", "-", "--output", place.path("stream.h5")});
  CHECK(place.run(words, read_file(train)).code == 0);
  const auto facts = [&](const std::string& name) {
    const std::string out = place.run({"info", place.path(name)}).out;
    return out.substr(out.find("examples"));
  };
  CHECK(std::filesystem::file_size(place.path("stream.h5")) > 0);
  CHECK(facts("stream.h5").substr(0, 20) == facts("out.h5").substr(0, 20));
}

TEST_CASE("learning a vocabulary needs room for the characters, texts, and no vocabulary", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const VocabularyPlace place;
  const std::string train = place.path("sample/train.txt"), out = place.path("v.txt");
  const auto refused = [&](const Words& more, const std::string& part) {
    Words words = {"prepare", "--learn-vocab", "300", "--output", out};
    words.insert(words.end(), more.begin(), more.end());
    const test::Result result = place.run(words);
    CAPTURE(result.err);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Catch::Contains(part));
    CHECK_FALSE(std::filesystem::exists(out));
  };
  refused({"--input", train, "--vocab", place.path("sample/vocab.txt")}, "expected no --vocab");
  refused({"--input", train, "--split", "train"}, "expected no --split");
  refused({"--input", train, "--task", "nq"}, "task nq has no texts to learn from");
  refused({}, "--input is required");
  const test::Result small = place.run({"prepare", "--learn-vocab", "110", "--input", train, "--output", out});
  CHECK(small.code == 2);
  CHECK_THAT(small.err, Catch::Contains("expected a size of at least"));
}

TEST_CASE("what is odd about a text for pre-training is told once", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const VocabularyPlace place;
  const auto prepare = [&](const std::string& text) {
    test::write_file(place.folder / "in.txt", text);
    const test::Result result =
        place.run({"prepare", "--task", "pretrain", "--split", "train", "--input", place.path("in.txt"), "--vocab",
                   place.path("sample/vocab.txt"), "--output", place.path("out.h5")});
    INFO(result.err);
    CHECK(result.code == 0);
    return result.err;
  };
  const std::string single = "the text is a single document, random next sentences come from that document itself";
  CHECK_THAT(prepare("The baker opens the oven.\nThe smith heats the iron.\n"), Catch::Contains(single));
  const std::string both = prepare(
      "The \xff"
      "baker opens.\n\nThe smith \xc3 heats.\n\xe2\x82\n");
  CHECK_THAT(both, !Catch::Contains(single));
  CHECK_THAT(both, Catch::Contains("4 bytes are not UTF-8 and are left out"));
  CHECK(both.find("UTF-8") == both.rfind("UTF-8"));
}

TEST_CASE("a signal while what was learned is written leaves nothing", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const VocabularyPlace place;
  REQUIRE(::mkfifo(place.path("fifo").c_str(), 0600) == 0);  // writing waits for a reader
  test::Child child({*test::program(), "prepare", "--learn-vocab", "300", "--input", place.path("sample/train.txt"),
                     "--output", place.path("fifo")},
                    place.path("log"));
  child.run_until([&] { return child.catches(SIGTERM); });
  child.send(SIGTERM);
  CHECK(child.wait() == 1);
  CHECK_THAT(read_file(place.path("log.err")), Catch::Contains("stopped"));
}
