// A fault that ends one process ends all of them soon, with a message that names the process; the run can be resumed.
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "tests/support/folders.h"
#include "tests/tasks/processes/mpirun.h"

namespace {

using namespace etc::test;
namespace fs = std::filesystem;
using Catch::Matchers::Contains;

constexpr double kSoon = 30;  // seconds

// The standard error output of mpirun and its processes.
std::string said_in(const TemporaryFolder& folder) {
  return etc::read_file(folder / "run.err");
}

// Whether all processes end soon.
bool all_end(const std::vector<pid_t>& ranks) {
  return wait_for(kSoon, [&] { return std::all_of(ranks.begin(), ranks.end(), has_ended); });
}

// Runs three processes until the first checkpoint exists, then limits resource `what` of one of them to `limit`; all
// must end soon. Returns their error output.
std::string said_without(const TemporaryFolder& folder, Words command, std::size_t rank, int what, rlim_t limit) {
  // The C library raises the size from which it maps buffers as soon as one is freed, and then keeps them.
  command.insert(command.begin(),
                 {"sh", "-c", "trap '' XFSZ; export MALLOC_MMAP_THRESHOLD_=65536; exec \"$0\" \"$@\""});
  Child run(several(3, command), folder / "run");
  const std::vector<pid_t> ranks = processes_of(run.pid(), 3);
  REQUIRE(ranks.size() == 3);
  REQUIRE(wait_for(20, [&] { return fs::exists(folder / "parts/last") || !run.running(); }));
  const struct rlimit small { limit, limit };
  REQUIRE(::prlimit(ranks[rank], static_cast<__rlimit_resource>(what), &small, nullptr) == 0);
  REQUIRE(wait_for(kSoon, [&] { return !run.running(); }));
  CHECK(run.wait() != 0);
  CHECK(all_end(ranks));
  return said_in(folder);
}

}  // namespace

TEST_CASE("a process without memory or disk ends all with its name, and the same command goes on",
          "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  {
    const TemporaryFolder folder;
    write_data(folder.path());
    // Buffers so large that every step allocates them from the operating system.
    Words command = training_command(folder.path(), "parts", "400", "5");
    *(std::find(command.begin(), command.end(), "--hidden-size") + 1) = "64";
    const std::string said = said_without(folder, command, 1, RLIMIT_AS, rlim_t{64} << 20);
    CHECK_THAT(said, Contains("rank 0 of 3 on") && Contains("ends: rank 1 of 3 on") && Contains("memory"));
  }
  const TemporaryFolder folder;
  write_data(folder.path());
  const Words command = training_command(folder.path(), "parts", "60", "1");
  // Files are limited to 8 KB: the existing checkpoint stays, and the last one cannot be saved at the end.
  const std::string said = said_without(folder, command, 0, RLIMIT_FSIZE, 8192);
  CHECK_THAT(said, Contains("ends: rank 0 of 3 on") && Contains("could not be saved"));
  const Result rest = run_several(2, command, folder.path());
  INFO(rest.err);
  CHECK(rest.code == 0);
  CHECK_THAT(rest.out, Contains("steps 60"));
}

TEST_CASE("a killed process ends all with a message that names it, and the same command goes on",
          "[tasks][processes]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_data(folder.path());
  const Words command = training_command(folder.path(), "parts", "30", "1");
  {
    Child run(several(3, command), folder / "run");
    const std::vector<pid_t> ranks = processes_of(run.pid(), 3);
    REQUIRE(ranks.size() == 3);
    REQUIRE(wait_for(20, [&] { return fs::exists(folder / "parts/last") || !run.running(); }));
    REQUIRE(run.running());
    ::kill(ranks[1], SIGKILL);
    REQUIRE(wait_for(kSoon, [&] { return !run.running(); }));
    CHECK(run.wait() != 0);
    CHECK(all_end(ranks));
    CHECK_THAT(said_in(folder),
               Contains("rank 1 of 3 on") && Contains("is gone: its process ended without reporting an error"));
  }
  const Result rest = run_several(2, command, folder.path());
  INFO(rest.err);
  CHECK(rest.code == 0);
  CHECK_THAT(rest.out, Contains("steps 30"));
}

TEST_CASE("a process that falls silent, as of a lost machine, ends all with its name", "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_data(folder.path());
  Child run(several(3, training_command(folder.path(), "parts", "4000", "1000")), folder / "run");
  const std::vector<pid_t> ranks = processes_of(run.pid(), 3);
  REQUIRE(ranks.size() == 3);
  REQUIRE(wait_for(20, [&] { return fs::exists(folder / "parts/metrics.jsonl") || !run.running(); }));
  REQUIRE(run.running());
  ::kill(ranks[1], SIGSTOP);
  CHECK(wait_for(kSoon, [&] { return has_ended(ranks[0]) && has_ended(ranks[2]); }));
  CHECK_THAT(said_in(folder), Contains("rank 1 of 3 on") && Contains("has been silent for 20 s"));
  const bool all_ended = wait_for(kSoon, [&] { return !run.running() && has_ended(ranks[1]); });
  if (!has_ended(ranks[1])) ::kill(ranks[1], SIGKILL);  // a stopped process would remain
  CHECK(all_ended);
}

TEST_CASE("a process with another configuration, program, data or processor is named, with what differs",
          "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_data(folder.path());
  const Words first = training_command(folder.path(), "run", "4", "1");
  // The error output of a run whose second process runs `other`.
  const auto said_beside = [&](const Words& other) {
    Words command = several(1, first);
    command.insert(command.end(), {":", "-n", "1"});
    command.insert(command.end(), other.begin(), other.end());
    Child run(command, folder / "run");
    REQUIRE(wait_for(kSoon, [&] { return !run.running(); }));
    CHECK(run.wait() != 0);
    const std::string said = said_in(folder);
    CHECK_THAT(said, Contains("rank 1 of 2 on"));
    return said;
  };
  Words seed = first;
  seed.insert(seed.end(), {"--seed", "7"});
  CHECK_THAT(said_beside(seed), Contains("training.seed: 7, expected 1"));

  Words program_of_its_own = first;
  program_of_its_own[0] = folder / "etc";
  fs::copy_file(first[0], program_of_its_own[0]);
  fs::copy_file(first[0] + "_mpi", program_of_its_own[0] + "_mpi");
  std::ofstream(program_of_its_own[0] + "_mpi", std::ios::app) << "another build";
  CHECK_THAT(said_beside(program_of_its_own), Contains("program.executable: "));

  Words data = first;
  write_readable_dataset(folder / "other.h5", 7, 30);
  *std::find(data.begin(), data.end(), (folder / "train.h5").string()) = (folder / "other.h5").string();
  CHECK_THAT(said_beside(data), Contains("data.content of the training data: "));

  Words processor = {"env", "ETC_MAX_CPU=avx2"};
  processor.insert(processor.end(), first.begin(), first.end());
  if (etc::instruction_set() != "x86-64 avx2") CHECK_THAT(said_beside(processor), Contains("x86-64 avx2"));
}

TEST_CASE("an error of one process ends the others, which wait for it", "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_data(folder.path());
  Words command = several(1, training_command(folder.path(), "run", "4", "1"));
  Words other = training_command(folder.path(), "run", "4", "1");
  *std::find(other.begin(), other.end(), (folder / "dev.h5").string()) = (folder / "missing.h5").string();
  command.insert(command.end(), {":", "-n", "1"});
  command.insert(command.end(), other.begin(), other.end());
  Child run(command, folder / "run");
  REQUIRE(wait_for(kSoon, [&] { return !run.running(); }));
  CHECK(run.wait() != 0);
  CHECK_THAT(said_in(folder), Contains("rank 0 of 2 on") && Contains("ends: rank 1 of 2 on") && Contains("missing.h5"));
}

namespace {

// The outcome of one of the thirty kills.
enum class Kill { all_ended, launcher_waits, too_late };

// Starts `size` processes of the command and kills one of them, `after` microseconds later. All of them must end soon.
// mpirun must end soon as well, unless it reports a fault of its own: when a process is killed while it connects to
// mpirun (Open MPI 4.1.4 with PMIx 4.2.2, "PMIX ERROR: UNREACHABLE"), mpirun ends all processes and then waits in
// PMIx_server_finalize for a mutex that none of its threads holds any more.
Kill kill_one(const TemporaryFolder& folder, const Words& command, int size, useconds_t after, std::mt19937& random) {
  Child run(several(size, command), folder / "run");
  const std::vector<pid_t> ranks = processes_of(run.pid(), size);
  ::usleep(after);
  const std::size_t victim = random() % static_cast<std::size_t>(size);
  const int signal = random() % 3 == 0 ? SIGTERM : SIGKILL;
  if (static_cast<int>(ranks.size()) != size) {
    // The machine is so busy that the processes never ran all at the same time: none is killed, and the run may finish.
    REQUIRE(wait_for(10 * kSoon, [&] { return !run.running(); }));
    return Kill::too_late;
  }
  ::kill(ranks[victim], signal);
  CAPTURE(size, victim, signal, after);
  const bool all_ended = all_end(ranks);
  CAPTURE(said_in(folder));
  REQUIRE(all_ended);
  if (wait_for(kSoon, [&] { return !run.running(); })) return Kill::all_ended;
  INFO("all processes have ended, mpirun has not");
  REQUIRE_THAT(said_in(folder), Contains("PMIX ERROR"));
  return Kill::launcher_waits;
}

}  // namespace

TEST_CASE("thirty kills at random: every time all end, and the run has the bits of one that was left alone",
          "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_data(folder.path());
  REQUIRE(run_several(1, training_command(folder.path(), "whole", "40", "1"), folder.path()).code == 0);
  std::mt19937 random(20);
  int of_kind[3] = {};
  for (int kills = 0; kills < 30; ++kills) {
    const int size = 2 + static_cast<int>(random() % 3);
    Words command = training_command(folder.path(), "parts", "40", "1");
    if (random() % 2 == 0) command.push_back("--shard-moments");
    const auto after = static_cast<useconds_t>(random() % 1'500'000);
    CAPTURE(kills);
    ++of_kind[static_cast<int>(kill_one(folder, command, size, after, random))];
  }
  CHECK(of_kind[static_cast<int>(Kill::launcher_waits)] <= 3);
  CHECK(of_kind[static_cast<int>(Kill::too_late)] <= 3);
  const Result last = run_several(2, training_command(folder.path(), "parts", "40", "1"), folder.path());
  INFO(last.err);
  REQUIRE(last.code == 0);
  CHECK(bits_of(folder / "parts") == bits_of(folder / "whole"));
}

TEST_CASE("wrong usage that only the first process sees has the exit code that it has in one process",
          "[tasks][processes]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_data(folder.path());
  etc::test::write_file(folder / "run/notes.txt", "mine");
  const Result result = run_several(2, training_command(folder.path(), "run", "2", "2"), folder.path());
  INFO(result.err);
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Contains("holds files that belong to no run"));
}

TEST_CASE("commands that nothing is gained for say that they are for one process", "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  const Result result = run_several(2, {program().value(), "info", folder.path().string()}, folder.path());
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Contains("etc info: expected one process, got 2"));
}

TEST_CASE("a launcher that is told to stop leaves a run that goes on", "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_data(folder.path());
  REQUIRE(run_several(1, training_command(folder.path(), "whole", "60", "1000"), folder.path()).code == 0);
  const Words command = training_command(folder.path(), "parts", "60", "1000");
  {
    Child run(several(2, command), folder / "run");
    REQUIRE(processes_of(run.pid(), 2).size() == 2);
    REQUIRE(wait_for(20, [&] { return fs::exists(folder / "parts/metrics.jsonl") || !run.running(); }));
    run.send(SIGTERM);
    REQUIRE(wait_for(kSoon, [&] { return !run.running(); }));
  }
  CHECK(fs::exists(folder / "parts/last"));  // saved because of the signal: no other checkpoint was due
  REQUIRE(run_several(2, command, folder.path()).code == 0);
  CHECK(bits_of(folder / "parts") == bits_of(folder / "whole"));
}
