// A run that is killed, is stopped or runs out of disk space resumes with the same bits as an uninterrupted one.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/files.h"
#include "etc_core/base/random.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/small_run.h"

namespace {

namespace fs = std::filesystem;
using namespace etc::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

bool writing_checkpoint(const fs::path& run) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run, ignored)) {
    if (entry.path().filename().string().starts_with("last.tmp")) return true;
  }
  return false;
}

// Kills runs `kills` times with SIGKILL, every other time while a checkpoint is being written, otherwise at a random
// moment; each run is then resumed until it ends, and compared.
void kill_and_compare(std::int64_t kills, const std::vector<std::string>& more = {}) {
  const etc::test::TemporaryFolder folder;
  write_data(folder.path());
  const auto command = [&](const std::string& run) {
    std::vector<std::string> words = training_command(folder.path(), run);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const auto start = Clock::now();
  REQUIRE(Child(command("reference"), folder / "reference_log").wait() == 0);
  const auto duration = Clock::now() - start;
  const std::string expected = bits_of(folder / "reference");

  std::int64_t killed = 0, while_writing = 0;
  std::uint32_t drawn = 0;
  for (int victim = 0; killed < kills; ++victim) {
    const std::string name = "run" + std::to_string(victim);
    const fs::path run = folder / name;
    while (true) {
      Child child(command(name), folder / "log");
      const bool at_write = killed % 2 == 1;
      const auto moment = Clock::now() + duration * etc::uniform_from_bits(etc::philox({drawn++, 0, 0, 0}, 7)[0]);
      while (killed < kills && child.running() && (Clock::now() < moment || (at_write && !writing_checkpoint(run)))) {
        if (!at_write) std::this_thread::sleep_for(1ms);
      }
      if (killed < kills && child.running()) {
        const bool writing = writing_checkpoint(run);
        child.send(SIGKILL);
        const int code = child.wait();
        if (code == 0) break;  // it had just finished: not killed
        REQUIRE(code == 128 + SIGKILL);
        while_writing += writing;
        killed += 1;
      } else {
        INFO(etc::read_file(folder / "log.err"));
        REQUIRE(child.wait() == 0);
        break;
      }
    }
    CHECK(bits_of(run) == expected);
  }
  WARN(killed << " kills, " << while_writing << " of them while a checkpoint was being written");
}

TEST_CASE("a run killed at any moment goes on with the same bits", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  // RAdam's step depends on the number of steps, so a count that restarts would be detected.
  kill_and_compare(3, {"--optimizer", "radam", "--adam-beta-2", "0.98", "--schedule", "inverse_sqrt"});
}

TEST_CASE("a run killed fifty times goes on with the same bits", "[tasks][slow]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  kill_and_compare(50);
}

TEST_CASE("a stopped run is saved, says how to go on, and goes on with the same bits", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const etc::test::TemporaryFolder folder;
  write_data(folder.path());
  REQUIRE(Child(training_command(folder.path(), "reference"), folder / "reference_log").wait() == 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string name = signal == SIGINT ? "int" : signal == SIGTERM ? "term" : "hup";
    Child child(training_command(folder.path(), name), folder / "log");
    child.run_until([&] { return fs::exists(folder / name / "last"); });
    child.send(signal);
    const int code = child.wait();
    const std::string said = etc::read_file(folder / "log.err");
    INFO(said);
    if (code != 0) {  // 0: it had just finished
      CHECK(code == 1);
      CHECK(said.find("everything is saved; to go on: etc train --resume " + (folder / name).string()) !=
            std::string::npos);
    }
    CHECK(!writing_checkpoint(folder / name));
    const auto again = etc::test::run_program({"train", "--resume", folder / name}, folder.path());
    INFO(again.err);
    CHECK(again.code == 0);
    CHECK(bits_of(folder / name) == bits_of(folder / "reference"));
  }
}

TEST_CASE("a disk without room leaves the checkpoint before whole", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const etc::test::TemporaryFolder folder;
  write_data(folder.path());
  REQUIRE(Child(training_command(folder.path(), "reference"), folder / "reference_log").wait() == 0);
  {
    Child child(training_command(folder.path(), "run"), folder / "log");
    child.run_until([&] { return fs::exists(folder / "run" / "last"); });
    child.send(SIGTERM);
    child.wait();
  }
  const std::string before = etc::read_file(folder / "run" / "last" / "state.safetensors");
  // A file size limit of 16 blocks of at most 1024 bytes: the weights do not fit, the log does.
  std::string line = "trap '' XFSZ; ulimit -f 16; exec";
  for (const std::string& word : training_command(folder.path(), "run")) line += " '" + word + "'";
  Child child({"/bin/sh", "-c", line}, folder / "log");
  const int code = child.wait();
  const std::string said = etc::read_file(folder / "log.err");
  INFO(said);
  CHECK(code == 1);
  CHECK(said.find("not saved, the checkpoint of step") != std::string::npos);
  CHECK(said.find("the last checkpoint could not be saved") != std::string::npos);
  CHECK(etc::read_file(folder / "run" / "last" / "state.safetensors") == before);
  CHECK(!writing_checkpoint(folder / "run"));
  CHECK(etc::test::run_program({"train", "--resume", folder / "run"}, folder.path()).code == 0);
  CHECK(etc::read_file(folder / "run" / "last" / "state.safetensors") ==
        etc::read_file(folder / "reference" / "last" / "state.safetensors"));
}

TEST_CASE("a run limited to AVX2 is one of an AVX2 processor, and of no other", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  if (etc::instruction_set().find("x86-64") == std::string::npos) return etc::test::skip("not on x86-64");
  const etc::test::TemporaryFolder folder;
  write_data(folder.path());
  std::vector<std::string> limited = training_command(folder.path(), "run");
  for (const char* word : {"--compute", "bf16"}) std::erase(limited, word);  // AVX2 has no bf16
  limited.insert(limited.begin(), {"/usr/bin/env", "ETC_MAX_CPU=avx2"});
  REQUIRE(Child(limited, folder / "log").wait() == 0);
  CHECK(Child(limited, folder / "log").wait() == 0);
  const etc::test::Result unlimited = etc::test::run_program({"train", "--resume", folder / "run"}, folder.path());
  INFO(unlimited.err);
  const bool same = etc::instruction_set() == "x86-64 avx2";
  CHECK(unlimited.code == (same ? 0 : 1));
  if (!same) CHECK(unlimited.err.find("cannot be resumed: ") != std::string::npos);
}

// The command as a user bound by file permissions: nobody, if the test itself is run by root.
std::vector<std::string> bound_by_permissions(std::vector<std::string> words, const fs::path& folder) {
  if (::geteuid() != 0) return words;
  constexpr int kNobody = 65534;
  // The program may be in a folder that only root can read.
  fs::copy_file(words[0], folder / "etc");
  words[0] = (folder / "etc").string();
  REQUIRE(::chown(folder.c_str(), kNobody, kNobody) == 0);
  const std::string id = std::to_string(kNobody);
  words.insert(words.begin(), {"/usr/bin/setpriv", "--reuid", id, "--regid", id, "--clear-groups"});
  return words;
}

TEST_CASE("a folder that becomes read-only leaves the checkpoint before whole", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const etc::test::TemporaryFolder folder;
  const fs::path run = folder / "run";
  write_data(folder.path());
  REQUIRE(Child(training_command(folder.path(), "reference"), folder / "reference_log").wait() == 0);
  Child child(bound_by_permissions(training_command(folder.path(), "run"), folder.path()), folder / "log");
  child.run_until([&] { return fs::exists(run / "last"); });
  fs::permissions(run, fs::perms::owner_write, fs::perm_options::remove);
  const int code = child.wait();
  const std::string said = etc::read_file(folder / "log.err");
  INFO(said);
  CHECK(code == 1);
  CHECK(said.find("not saved, the checkpoint of step") != std::string::npos);
  CHECK(said.find("Permission denied") != std::string::npos);
  fs::permissions(run, fs::perms::owner_write, fs::perm_options::add);
  CHECK(etc::test::run_program({"train", "--resume", run}, folder.path()).code == 0);
  CHECK(bits_of(run) == bits_of(folder / "reference"));
}

}  // namespace
