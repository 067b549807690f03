// What a run writes beside checkpoints: its lock, metrics as JSON lines, TensorBoard events.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tasks/train/metrics_log.h"
#include "tasks/train/run_directory.h"
#include "tasks/train/stop_signal.h"
#include "tasks/train/tensorboard.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

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

// The records of an events file, their checksums checked; crc32c is the one function shared with the writer, and has a
// test with published values.
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
      etc::write_file_atomically(path / name / "x", "mine");
    }
    etc::write_file_atomically(path / "p.json.partial.tmp", "of a prediction that is being written");
    const pid_t child = ::fork();
    if (child == 0) {
      auto* checkpoint = new etc::AtomicFolder(path / "last", etc::OldFiles::keep);
      etc::write_file_atomically(checkpoint->path() / "x", "half");
      ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    CHECK(std::distance(fs::directory_iterator(path), {}) == 7);  // the lock as well
    CHECK(message_of_opening(path).empty());
    CHECK(std::distance(fs::directory_iterator(path), {}) == 6);
    CHECK(etc::read_file(path / "last.tmp.abc123/x") == "mine");
    CHECK(etc::read_file(path / "best.old/x") == "mine");
    CHECK(fs::exists(path / "p.json.partial.tmp"));
    CHECK(!fs::exists(path / "last"));
  }
}

TEST_CASE("a folder with other files is not taken for a run", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::write_file_atomically(folder / "thesis.txt", "mine");
  CHECK(message_of_opening(folder.path()).find("holds files that are no run's") != std::string::npos);
  CHECK(!fs::exists(folder / "lock"));
  CHECK(message_of_opening(folder / "thesis.txt").find("cannot create the folder") != std::string::npos);
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
  etc::write_file_atomically(folder / "metrics.jsonl", whole + "{\"step\": 2, \"lo");
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

TEST_CASE("CRC-32C gives the published values", "[tasks]") {  // RFC 3720, appendix B.4
  CHECK(etc::crc32c("123456789") == 0xE3069283u);
  CHECK(etc::crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(etc::crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
}

TEST_CASE("TensorBoard events are records of version, step and scalars", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  {
    etc::TensorBoardWriter writer(folder.path());
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

TEST_CASE("the first stop signal is only noted", "[tasks]") {
  const etc::StopSignal signal;
  CHECK(!etc::StopSignal::requested());
  ::raise(SIGTERM);
  CHECK(etc::StopSignal::requested());
  CHECK(std::string(etc::StopSignal::name()) == "SIGTERM");
}

}  // namespace
