// Files in a run's folder that must not be lost: the run's own files, and foreign ones.
#include <csignal>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tasks/train/metrics_log.h"
#include "tasks/train/run_directory.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/place.h"
#include "tests/tasks/train/small_run.h"

namespace {

namespace fs = std::filesystem;
using etc::test::has;
using etc::test::Place;
using etc::test::Result;
using etc::test::Words;

void put(const fs::path& file) {
  fs::create_directories(file.parent_path());
  etc::test::write_file(file, "mine");
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("of the weights that are kept the run's own oldest ones go, whatever else lies beside them", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const Words keeping = {"--keep-last", "2", "--keep-every", "2"};
  REQUIRE(place.run(place.training(keeping, "train.h5", "6")).code == 0);
  const fs::path kept = place.folder / "run/kept";
  REQUIRE(names_in(kept) == std::vector<std::string>{"step_00000004", "step_00000006"});
  for (const char* name : {"step_0_notes/n.txt", "step_best/n.txt", "step_00000001/n.txt", "step_00000004/n.txt"}) {
    put(kept / name);
  }
  REQUIRE(place.run(place.training(keeping, "train.h5", "10")).code == 0);
  CHECK(names_in(kept) == std::vector<std::string>{"step_00000001", "step_00000004", "step_00000008", "step_00000010",
                                                   "step_0_notes", "step_best"});
  CHECK(names_in(kept / "step_00000004") == std::vector<std::string>{"n.txt"});
  CHECK(etc::read_file(kept / "step_0_notes/n.txt") == "mine");
}

TEST_CASE("a resumed run says what it does not have, and refuses epochs beside steps", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const fs::path run = place.folder / "run";
  place.train({"--eval-data", place.folder / "train.h5"});
  const std::string card = etc::read_file(run / "best/README.md");
  CHECK(has(card, "etc predict --model . --input records.json --vocab VOCABULARY --answers -"));
  CHECK(has(card, "etc encode --model . --text texts.jsonl --vocab VOCABULARY --output vectors.npy"));

  const Result model = place.run({"train", "--resume", run / "best"});
  CHECK(model.code == 2);
  fs::copy(run / "best", place.folder / "model");
  const Result alone = place.run({"train", "--resume", place.folder / "model"});
  CHECK(alone.code == 1);
  CHECK(has(alone.err, "there is no run to resume: expected the folder of a run, got a model"));

  const Result epochs = place.run({"train", "--resume", run, "--epochs", "30"});
  CHECK(epochs.code == 2);
  CHECK(has(epochs.err, "--epochs: with steps=2 the epochs say nothing: expected --steps N, or --steps 0 beside them"));
  const Result by_epochs = place.run({"train", "--resume", run, "--epochs", "1", "--steps", "0"});
  INFO(by_epochs.err);
  CHECK(by_epochs.code == 0);
  CHECK(has(by_epochs.err, "finished at step 5; checkpoints: "));

  fs::remove_all(run / "best");
  const Result lost = place.run({"train", "--resume", run});
  CHECK(lost.code == 0);
  CHECK(has(lost.err, "is no longer there"));
  CHECK_FALSE(has(lost.err, "run/best"));
}

TEST_CASE("no command that reads a run writes over its files", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  REQUIRE(place.run(place.training()).code == 0);
  const fs::path run = place.folder / "run";
  for (const fs::path& model : {run, run / "best", run / "last"}) {
    for (const char* file : {"lock", "config.json", "metrics.jsonl", "log.txt", "last/state.safetensors",
                             "last/model.safetensors", "best/config.json"}) {
      const std::string before = etc::read_file(run / file);
      for (const char* command : {"predict", "eval"}) {
        const Result result =
            place.run({command, "--model", model, "--data", place.folder / "train.h5", "--output", run / file});
        CAPTURE(model, file, result.err);
        CHECK(result.code == 2);
        CHECK(etc::read_file(run / file) == before);
      }
    }
  }
  // An output file may be placed there, and be replaced by the same command.
  for (int times = 0; times < 2; ++times) {
    CHECK(place.run({"predict", "--model", run, "--data", place.folder / "train.h5", "--output", run / "mine.json"})
              .code == 0);
  }
}

TEST_CASE("a folder with a file called lock is a run's only where a process number is in it", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  CHECK_FALSE(etc::is_run_folder(folder.path()));
  put(folder / "lock");
  CHECK_FALSE(etc::is_run_folder(folder.path()));
  CHECK_THROWS_WITH(etc::RunDirectory(folder.path()), Catch::Matchers::Contains("holds files that belong to no run"));
  CHECK(etc::read_file(folder / "lock") == "mine");
  etc::test::write_file(folder / "lock", "4711");
  CHECK(etc::is_run_folder(folder.path()));
  etc::test::write_file(folder / "lock", "");
  CHECK(etc::is_run_folder(folder.path()));
}

TEST_CASE("an evaluation that is logged already is not logged twice by the run that makes it again", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  {
    etc::MetricsLog log(folder.path(), 0);
    log.add(5, "train", {{"loss", 2.0}});
    log.add(5, "eval", {{"accuracy", 0.5}});
  }
  etc::MetricsLog log(folder.path(), 5);
  log.add(5, "eval", {{"accuracy", 0.5}});
  log.add(6, "train", {{"loss", 1.0}});
  log.add(10, "eval", {{"accuracy", 0.6}});
  const std::string lines = etc::read_file(folder / "metrics.jsonl");
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 4);
  CHECK(etc::test::event_steps(folder.path()) == std::vector<std::uint64_t>{5, 5, 6, 10});
}

TEST_CASE("a checkpoint larger than files may be is reported, and training goes on", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const etc::test::FileSizeLimit limit(20'000);
  ::signal(SIGXFSZ, SIG_DFL);  // inherited by the program
  const Result result = place.run(place.training({}, "train.h5", "4"));
  CAPTURE(result.err);
  CHECK(result.code == 1);
  CHECK(has(result.err, "File too large"));
  CHECK(has(result.err, "the last checkpoint could not be saved"));
}

TEST_CASE("weights are taken from a run's best checkpoint, and no checkpoint is resumed", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  REQUIRE(place.run(place.training()).code == 0);
  const fs::path run = place.folder / "run";
  Words again = place.training({"--init-from", run});
  *(std::find(again.begin(), again.end(), "--output") + 1) = place.folder / "again";
  const Result taken = place.run(again);
  CAPTURE(taken.err);
  CHECK(taken.code == 0);
  CHECK(has(taken.err, "its best checkpoint"));
  const Result resumed = place.run({"train", "--resume", run / "best"});
  CHECK(resumed.code == 2);
  CHECK(has(resumed.err, "expected a run, got one of its checkpoints (--resume " + run.string() + ")"));
}

TEST_CASE("prepared data named twice are refused by every command that reads them", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  REQUIRE(place.run(place.training()).code == 0);
  const std::string data = place.folder / "train.h5", link = place.folder / "link.h5";
  fs::create_symlink(data, link);
  for (const char* command : {"eval", "predict"}) {
    const Result result =
        place.run({command, "--model", place.folder / "run", "--data", data, link, "--output", place.folder / "out"});
    CAPTURE(result.err);
    CHECK(result.code == 2);
    CHECK(has(result.err, "expected every file once, got it twice"));
  }
}

}  // namespace
