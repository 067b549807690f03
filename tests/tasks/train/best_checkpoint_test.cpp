// Checkpoint `best` when it cannot be written for a while, or at all; and which evaluation it belongs to.
#include "tasks/train/best_checkpoint.h"

#include <sys/resource.h>

#include <csignal>
#include <limits>

#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "tasks/train/run_state.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/small_run.h"

namespace {

namespace fs = std::filesystem;
using namespace etc::test;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A symbolic link to a place where no user can create a folder.
void block(const fs::path& best) {
  fs::create_directories(best.parent_path());
  fs::create_symlink("/proc/no-such-process/best", best);
}

void unblock(const fs::path& best) {
  fs::remove(best);
}

// A run's folder whose checkpoint `best` cannot be written.
void start_blocked(const fs::path& run) {
  block(run / "best");
  etc::test::write_file(run / "lock", "");
}

// Data, and a run of 40 steps on them that was left alone. It is made once, since each run saves after every step.
struct Reference {
  static constexpr const char* kSteps = "40";

  Reference() {
    write_data(folder.path());
    REQUIRE(Child(training_command(folder.path(), "reference", kSteps), folder / "reference_log").wait() == 0);
    bits = bits_of(folder / "reference");
  }
  // The command of the same run in folder run, which is new.
  std::vector<std::string> again() const {
    fs::remove_all(folder / "run");
    return training_command(folder.path(), "run", kSteps);
  }

  TemporaryFolder folder;
  std::string bits;
};

const Reference& reference() {
  static const Reference made;
  return made;
}

TEST_CASE("a result that is not a number is below every number", "[tasks]") {
  const auto better = [](double now, double best) { return etc::is_better({{"f1", now}}, {{"f1", best}}); };
  CHECK(better(0.7, 0.5));
  CHECK(!better(0.5, 0.5));
  CHECK(!better(0.4, 0.5));
  CHECK(better(0, kNan));
  CHECK(better(-std::numeric_limits<double>::infinity(), kNan));
  CHECK(!better(kNan, 0.1));
  CHECK(!better(kNan, kNan));
  CHECK(etc::is_better({{"f1", kNan}}, {}));  // the first one: a checkpoint is better than none
  CHECK(etc::is_better({{"f1", 0.7}, {"loss", kNan}}, {{"f1", 0.6}, {"loss", 0}}));
}

TEST_CASE("the best weights are kept until they can be saved, whatever becomes of the model", "[tasks]") {
  const TemporaryFolder folder;
  const etc::Json config = {{"model", etc::Json::object()}};
  const etc::MoreFiles files = {{"vocab.txt", "a\nb\n"}};
  etc::ParameterSet parameters;
  parameters.add("w", {3, 5}, {etc::Initializer::Kind::truncated_normal, 1});
  parameters.add("b", {7}, {etc::Initializer::Kind::truncated_normal, 1});
  parameters.initialize(1);
  etc::save_model(folder / "expected", config, parameters, files);
  const auto saved_right = [&](const fs::path& best) {
    return etc::read_file(best / "model.safetensors") == etc::read_file(folder / "expected/model.safetensors") &&
           etc::read_file(best / "vocab.txt") == "a\nb\n";
  };
  block(folder / "best");
  etc::BestCheckpoint best(folder / "best", config, files);
  best.replace(parameters, 5);
  CHECK(!best.saved());
  fs::create_directory(folder / "last5");
  best.write_kept(folder / "last5", 5);
  CHECK(fs::is_empty(folder / "last5"));  // the checkpoint's own weights are those
  parameters.initialize(2);               // training goes on
  best.retry(6);
  CHECK(!best.saved());
  CHECK(fs::is_symlink(folder / "best"));

  SECTION("by the same process") {
    unblock(folder / "best");
    best.retry(7);
    CHECK(best.saved());
    CHECK(saved_right(folder / "best"));
  }
  SECTION("by the process that goes on from checkpoint `last`") {
    fs::create_directory(folder / "last7");
    best.write_kept(folder / "last7", 7);
    unblock(folder / "best");
    etc::BestCheckpoint again(folder / "best", config, files);
    again.read_kept(folder / "last7", parameters, 7, 5);
    CHECK(!again.saved());
    again.retry(7);
    CHECK(again.saved());
    CHECK(saved_right(folder / "best"));
  }
  SECTION("by the process that goes on from that very step") {
    unblock(folder / "best");
    parameters.initialize(1);
    etc::BestCheckpoint again(folder / "best", config, files);
    again.read_kept(folder / "last5", parameters, 5, 5);
    parameters.initialize(3);
    again.retry(5);
    CHECK(saved_right(folder / "best"));
  }
  SECTION("a better evaluation takes the place of what is kept") {
    parameters.initialize(1);
    unblock(folder / "best");
    best.replace(parameters, 9);
    CHECK(best.saved());
    CHECK(saved_right(folder / "best"));
  }
}

TEST_CASE("a best checkpoint that cannot be saved is reported once a step, whoever asks", "[tasks]") {
  const TemporaryFolder folder;
  const etc::Json config = {{"model", etc::Json::object()}};
  const etc::MoreFiles files;
  etc::ParameterSet parameters;
  parameters.add("w", {3}, {etc::Initializer::Kind::ones, 0});
  parameters.initialize(1);
  block(folder / "best");
  etc::log::also_to_file(folder / "log.txt");
  struct LogEnd {
    ~LogEnd() { etc::log::to_stderr(); }
  } end;
  etc::BestCheckpoint best(folder / "best", config, files);
  best.replace(parameters, 5);  // an evaluation
  best.retry(5);                // called by the save of the same step
  const auto reports = [&] {
    const std::string said = etc::read_file(folder / "log.txt");
    std::ptrdiff_t count = 0;
    for (std::size_t at = said.find("of step 5"); at != std::string::npos; at = said.find("of step 5", at + 1)) ++count;
    return count;
  };
  CHECK(reports() == 1);
  best.retry(6);
  best.retry(6);  // called by the save after a signal
  CHECK(reports() == 2);
  unblock(folder / "best");
  best.retry(6);
  CHECK(!best.saved());
  best.retry(7);
  CHECK(best.saved());
  CHECK(reports() == 3);
}

TEST_CASE("weights that were kept leave checkpoint `last` once they are saved, somebody's files do not", "[tasks]") {
  const TemporaryFolder folder;
  const etc::Json config = {{"model", etc::Json::object()}}, identity = etc::Json::object();
  const etc::MoreFiles files;
  etc::ParameterSet parameters;
  parameters.add("w", {3}, {etc::Initializer::Kind::ones, 0});
  parameters.initialize(1);
  const etc::Optimizer optimizer{etc::OptimizerOptions{}};
  etc::RunProgress progress;
  progress.step = 7;
  block(folder / "best");
  etc::BestCheckpoint best(folder / "best", config, files);
  best.replace(parameters, 5);
  const fs::path last = folder / "last", kept = last / etc::BestCheckpoint::kKeptFile;
  etc::save_run(last, {config, parameters, files, optimizer.moments(), progress, best, identity});
  CHECK(fs::exists(kept));
  etc::test::write_file(last / "notes.txt", "mine");
  unblock(folder / "best");
  best.retry(7);
  etc::save_run(last, {config, parameters, files, optimizer.moments(), progress, best, identity});
  CHECK(!fs::exists(kept));
  CHECK(etc::read_file(last / "notes.txt") == "mine");
}

TEST_CASE("a run whose best checkpoint is never saved fails, and the same command saves it", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  etc::test::write_data(folder.path());
  REQUIRE(Child(training_command(folder.path(), "reference"), folder / "reference_log").wait() == 0);
  start_blocked(run);
  const int code = Child(training_command(folder.path(), "run"), folder / "log").wait();
  const std::string said = etc::read_file(folder / "log.err");
  INFO(said);
  CHECK(code == 1);
  CHECK(said.find("train: checkpoint `best` could not be saved") != std::string::npos);
  CHECK(said.find("the same command tries again") != std::string::npos);
  CHECK(etc::read_file(folder / "log.out").empty());
  CHECK(fs::is_symlink(run / "best"));
  const etc::RunProgress progress = etc::read_run_progress(run / "last");
  CHECK(progress.step == 24);
  CHECK(!progress.best_saved);
  const Result info = etc::test::run_program({"info", run}, folder.path());
  CHECK(info.out.find("not yet in checkpoint `best`") != std::string::npos);

  unblock(run / "best");
  const Result again = etc::test::run_program({"train", "--resume", run}, folder.path());
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(bits_of(run) == bits_of(folder / "reference"));
  CHECK(!fs::exists(run / "last/unsaved_best.safetensors"));
}

TEST_CASE("a best checkpoint that could not be saved for a while is saved later in the run", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const TemporaryFolder& folder = reference().folder;
  const fs::path run = folder / "run";
  const std::vector<std::string> command = reference().again();
  start_blocked(run);
  Child child(command, folder / "log");
  child.run_until([&] { return fs::exists(run / "last/unsaved_best.safetensors"); });

  SECTION("by the run itself") {
    unblock(run / "best");
    CHECK(child.wait() == 0);
  }
  SECTION("by the one that goes on after it was killed") {
    child.send(SIGKILL);
    CHECK(child.wait() == 128 + SIGKILL);
    CHECK(!etc::read_run_progress(run / "last").best_saved);
    unblock(run / "best");
    CHECK(etc::test::run_program({"train", "--resume", run}, folder.path()).code == 0);
  }
  SECTION("by the one that goes on after it was stopped") {
    child.send(SIGTERM);
    CHECK(child.wait() == 1);
    CHECK(etc::read_file(folder / "log.err").find("everything is saved") != std::string::npos);
    unblock(run / "best");
    CHECK(etc::test::run_program({"train", "--resume", run}, folder.path()).code == 0);
  }
  INFO(etc::read_file(folder / "log.err"));
  CHECK(bits_of(run) == reference().bits);
}

TEST_CASE("a disk that is full for a moment costs a run nothing", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const TemporaryFolder& folder = reference().folder;
  const fs::path run = folder / "run";
  // A limit on file sizes, 16 blocks of at most 1024 bytes, stands for a full disk until it is removed.
  std::string line = "trap '' XFSZ; ulimit -S -f 16; exec";
  for (const std::string& word : reference().again()) line += " '" + word + "'";
  Child child({"/bin/sh", "-c", line}, folder / "full_log");
  const auto warned = [&] {
    // The file is created by the child, perhaps not yet.
    return fs::exists(folder / "full_log.err") &&
           etc::read_file(folder / "full_log.err").find("checkpoint `best` of step 5 not saved") != std::string::npos;
  };
  child.run_until(warned);
  if (child.running()) {
    struct rlimit limit {};
    REQUIRE(::prlimit(child.pid(), RLIMIT_FSIZE, nullptr, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    REQUIRE(::prlimit(child.pid(), RLIMIT_FSIZE, &limit, nullptr) == 0);
  }
  const int code = child.wait();
  INFO(etc::read_file(folder / "full_log.err"));
  CHECK(warned());
  CHECK(code == 0);
  CHECK(bits_of(run) == reference().bits);
}

TEST_CASE("a run whose folder vanishes ends with an error, not as finished", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const bool renamed = GENERATE(true, false);
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  etc::test::write_data(folder.path());
  Child child(training_command(folder.path(), "run", "80"), folder / "log");
  child.run_until([&] { return fs::exists(run / "last"); });
  if (renamed) {
    fs::rename(run, folder / "elsewhere");
  } else {
    std::error_code code;  // files may appear while others disappear
    do {
      fs::remove_all(run, code);
    } while (code);
  }
  const int code = child.wait();
  const std::string said = etc::read_file(folder / "log.err");
  INFO(said);
  CHECK(code == 1);
  CHECK(said.find("the run's folder is gone: it was ") != std::string::npos);
  if (renamed) CHECK(etc::test::run_program({"train", "--resume", folder / "elsewhere"}, folder.path()).code == 0);
}

}  // namespace
