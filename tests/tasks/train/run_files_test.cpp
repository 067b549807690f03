// Files of a run other than checkpoints: its lock, metrics as JSON lines, TensorBoard events.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <limits>

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/crc32c.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tasks/train/metrics_log.h"
#include "tasks/train/run_directory.h"
#include "tasks/train/run_record.h"
#include "tasks/train/tensorboard.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/small_run.h"

namespace {

namespace fs = std::filesystem;

std::string message_of_opening(const fs::path& folder) {
  try {
    const etc::RunDirectory run(folder);
  } catch (const etc::Error& error) {
    return error.what();
  }
  return "";
}

std::uint64_t number(const std::string& bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

// The records of an events file, with verified checksums; crc32c is the only function shared with the writer, and has a
// test with published values (tests/base/crc32c_test.cpp).
std::vector<std::string> records_of(const std::string& bytes) {
  const auto masked = [](std::string_view data) {
    const std::uint32_t crc = etc::crc32c(data);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  std::vector<std::string> records;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const auto length = static_cast<std::size_t>(number(bytes, at, 8));
    REQUIRE(number(bytes, at + 8, 4) == masked(std::string_view(bytes).substr(at, 8)));
    records.push_back(bytes.substr(at + 12, length));
    REQUIRE(number(bytes, at + 12 + length, 4) == masked(records.back()));
    at += 16 + length;
  }
  return records;
}

TEST_CASE("a run's folder belongs to one process at a time", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  const fs::path path = folder / "run";
  {
    const etc::RunDirectory run(path);
    CHECK(message_of_opening(path).find("in use by another run (process " + std::to_string(::getpid()) + ")") !=
          std::string::npos);
  }
  CHECK(message_of_opening(path).empty());

  SECTION("also after its holder was killed") {
    const pid_t child = ::fork();
    if (child == 0) {
      const etc::RunDirectory run(path);
      ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    CHECK(message_of_opening(path).empty());
  }
  SECTION("what killed writers of its checkpoints left is removed, a person's files are not") {
    for (const char* name : {"last.tmp.abc123", "best.old", "last.old", "notes.tmp"}) {
      fs::create_directory(path / name);
      etc::test::write_file(path / name / "x", "mine");
    }
    etc::test::write_file(path / "p.json.partial.tmp", "of a prediction that is being written");
    const pid_t child = ::fork();
    if (child == 0) {
      auto* checkpoint = new etc::AtomicFolder(path / "last", etc::OldFiles::keep);
      etc::test::write_file(checkpoint->path() / "x", "half");
      ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    CHECK(std::distance(fs::directory_iterator(path), {}) == 7);  // including the lock
    CHECK(message_of_opening(path).empty());
    CHECK(std::distance(fs::directory_iterator(path), {}) == 6);
    CHECK(etc::read_file(path / "last.tmp.abc123/x") == "mine");
    CHECK(etc::read_file(path / "best.old/x") == "mine");
    CHECK(fs::exists(path / "p.json.partial.tmp"));
    CHECK(!fs::exists(path / "last"));
  }
}

TEST_CASE("a run's folder is made behind a link that leads to nothing yet", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  fs::create_directory_symlink(folder / "disk" / "run", folder / "link");
  const etc::RunDirectory run(folder / "link");
  CHECK(fs::exists(folder / "disk" / "run" / "lock"));
}

TEST_CASE("a folder with other files is not taken for a run", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_file(folder / "thesis.txt", "mine");
  CHECK(message_of_opening(folder.path()).find("holds files that belong to no run") != std::string::npos);
  CHECK(!fs::exists(folder / "lock"));
  CHECK(message_of_opening(folder / "thesis.txt").find("cannot create the folder") != std::string::npos);
}

TEST_CASE("weights kept behind a step are not counted among the newest, being written again", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  const etc::Json config = {{"model", etc::Json::object()}};
  const etc::MoreFiles files;
  etc::ParameterSet parameters;
  parameters.add("weights", {2}, {});
  parameters.initialize(1);
  etc::RunRecord record(folder / "run", config, files);
  for (const std::int64_t step : {5, 10, 15}) record.keep(parameters, step, 3);
  record.keep(parameters, 10, 2);  // by a run resumed from a step before 10
  CHECK(fs::exists(folder / "run/kept/step_00000005"));
  CHECK(fs::exists(folder / "run/kept/step_00000010"));
  record.keep(parameters, 15, 2);
  CHECK(!fs::exists(folder / "run/kept/step_00000005"));
  CHECK(fs::exists(folder / "run/kept/step_00000015"));
}

TEST_CASE("metrics are JSON lines and a resumed run continues them from its step", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  {
    etc::MetricsLog log(folder.path(), 0);
    log.add(1, "train", {{"loss", 0.1}, {"norm", std::numeric_limits<double>::quiet_NaN()}});
    log.add(2, "train", {{"loss", 0.2}});
    log.add(3, "eval", {{"accuracy", 1}});
  }
  const std::string whole = etc::read_file(folder / "metrics.jsonl");
  etc::test::write_file(folder / "metrics.jsonl", whole + "{\"step\": 2, \"lo");
  { etc::MetricsLog log(folder.path(), 2); }
  const std::string resumed = etc::read_file(folder / "metrics.jsonl");
  CHECK(whole.substr(0, resumed.size()) == resumed);
  std::istringstream lines(resumed);
  std::string line;
  std::vector<etc::Json> entries;
  while (std::getline(lines, line)) entries.push_back(etc::Json::parse(line));
  REQUIRE(entries.size() == 2);
  CHECK(entries[0]["loss"] == 0.1);
  CHECK(entries[0]["norm"].is_null());
  CHECK(entries[1]["step"] == 2);
  CHECK(entries[1]["kind"] == "train");
}

TEST_CASE("TensorBoard events are records of version, step and scalars", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  {
    etc::TensorBoardWriter writer(folder.path(), 0);
    CHECK(writer.add(300, 1.5, {{"train/loss", 0.25}, {"x", -1}}));
  }
  REQUIRE(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
  const auto records = records_of(etc::read_file(fs::directory_iterator(folder.path())->path()));
  REQUIRE(records.size() == 2);
  CHECK(records[0].find("\x1a\x0d"
                        "brain.Event:2") != std::string::npos);
  const std::string& event = records[1];
  CHECK(event[0] == '\x09');
  CHECK(number(event, 1, 8) == 0x3ff8000000000000u);         // 1.5
  CHECK(event.substr(9, 3) == std::string("\x10\xac\x02"));  // step 300
  CHECK(event.substr(12, 2) == std::string("\x2a\x1d"));     // summary of 29 bytes
  CHECK(event.substr(14, 2) == std::string("\x0a\x11"));     // first value, 17 bytes
  CHECK(event.substr(16, 12) == std::string("\x0a\x0a"
                                            "train/loss"));
  CHECK(event[28] == '\x15');
  CHECK(number(event, 29, 4) == 0x3e800000u);  // 0.25f
  CHECK(event.substr(33, 5) == std::string("\x0a\x08\x0a\x01x"));
  CHECK(number(event, 39, 4) == 0xbf800000u);  // -1.0f
}

TEST_CASE("a resumed run leaves each step once in the events", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  const auto log_steps = [&](std::int64_t resumed, std::int64_t first, std::int64_t last) {
    etc::MetricsLog log(folder.path(), resumed);
    for (std::int64_t step = first; step <= last; ++step) log.add(step, "train", {{"loss", 0.5}});
  };
  using Steps = std::vector<std::uint64_t>;
  log_steps(0, 1, 300);
  CHECK(etc::test::event_steps(folder.path()).size() == 300);
  // Simulates a process killed while it wrote a record.
  const fs::path first = fs::path(etc::test::events_files(folder.path()).at(0));
  etc::test::write_file(first, etc::read_file(first) + std::string("\x20\0\0\0\0\0\0\0xyz", 11));
  log_steps(200, 201, 203);
  log_steps(202, 203, 205);
  Steps expected;
  for (std::uint64_t step = 1; step <= 205; ++step) expected.push_back(step);
  CHECK(etc::test::event_steps(folder.path()) == expected);

  // A TensorBoard that has read the repeated steps is told to discard them.
  const auto files = etc::test::events_files(folder.path());
  REQUIRE(files.size() == 3);
  const auto events = records_of(etc::read_file(files[1]));
  REQUIRE(events.size() >= 2);
  CHECK(events[1].substr(9) == std::string("\x10\xc9\x01\x3a\x02\x08\x01"));  // step 201, session_log START
  CHECK(records_of(etc::read_file(files[0])).size() == 201);

  SECTION("also where no checkpoint had been saved") {
    log_steps(0, 1, 2);
    CHECK(etc::test::event_steps(folder.path()) == Steps{1, 2});
  }
  SECTION("and files that are none of ours are left alone") {
    const fs::path other = folder / "events.out.tfevents.5.other", damaged = folder / "events.out.tfevents.6.7.etc";
    etc::test::write_file(other, etc::read_file(files[0]));
    etc::test::write_file(damaged, "damaged");
    log_steps(0, 1, 2);
    CHECK(records_of(etc::read_file(other)).size() == 201);
    CHECK(etc::read_file(damaged) == "damaged");
  }
}

TEST_CASE("a disk that is full for a moment costs no line of the metrics and no event", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  const fs::path lines = folder / "metrics.jsonl";
  // The steps of the lines, all of which are complete.
  const auto steps_of_lines = [&] {
    std::istringstream stream(etc::read_file(lines));
    std::vector<std::uint64_t> steps;
    for (std::string line; std::getline(stream, line);) steps.push_back(etc::Json::parse(line)["step"]);
    return steps;
  };
  std::vector<std::uint64_t> all, before;
  {
    etc::MetricsLog log(folder.path(), 0);
    const auto add = [&](std::uint64_t steps) {
      while (steps-- > 0) {
        all.push_back(all.size() + 1);
        log.add(static_cast<std::int64_t>(all.back()), "train", {{"loss", 0.5}});
      }
    };
    add(10);
    before = all;
    {
      const etc::test::FileSizeLimit full(fs::file_size(lines) + 20);  // in the middle of a line
      add(50);
    }
    CHECK(steps_of_lines() == before);
    CHECK(etc::test::event_steps(folder.path()).size() >= before.size());
    add(1);
    CHECK(steps_of_lines() == all);
    CHECK(etc::test::event_steps(folder.path()) == all);
    const etc::test::FileSizeLimit full(fs::file_size(lines) + 20);
    add(5);
  }
  CHECK(steps_of_lines() == all);  // there was space again at the end
  CHECK(etc::test::event_steps(folder.path()) == all);
}

TEST_CASE("a run's folder that is no longer the one that was opened is an error", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  const etc::RunDirectory run(folder / "run");
  const auto message = [&] {
    try {
      run.require_present();
    } catch (const etc::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string where = (folder / "run").string() + ": the run's folder is gone: it was ";
  CHECK(message().empty());
  fs::rename(folder / "run", folder / "elsewhere");
  CHECK(message() == where + "deleted or renamed while the run was at work");
  fs::create_directory(folder / "run");
  CHECK(message() == where + "replaced by another while the run was at work");
}

}  // namespace
