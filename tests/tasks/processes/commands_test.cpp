// Commands that run a model in several processes leave what one process leaves, byte for byte.
#include "etc_core/comm/launch.h"
#include "tests/tasks/processes/mpirun.h"

using namespace etc::test;

TEST_CASE("eval, predict and encode write the same bytes in 1 and 3 processes", "[tasks][processes]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_data(folder.path());
  const auto run = [&](int size, const Words& arguments) {
    Words command = {program().value()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Result result = run_several(size, command, folder.path());
    INFO(size << " processes: " << result.err);
    REQUIRE(result.code == 0);
    return result.out;
  };
  REQUIRE(run_several(1, training_command(folder.path(), "run", "2", "2"), folder.path()).code == 0);
  const std::string model = folder / "run/best", data = folder / "train.h5";
  std::string metrics, predictions, states;
  for (const int size : {1, 3}) {
    const std::string name = folder / ("out" + std::to_string(size));
    const std::string evaluated =
        run(size, {"eval", "--model", model, "--data", data, "--output", name + ".eval.json"});
    run(size, {"predict", "--model", model, "--data", data, "--output", name + ".json"});
    run(size, {"encode", "--model", model, "--data", data, "--output", name + ".h5", "--all-layers"});
    CAPTURE(size);
    if (size == 1) {
      metrics = evaluated;
      predictions = etc::read_file(name + ".json");
      states = etc::read_file(name + ".h5");
      REQUIRE(metrics.find("accuracy") != std::string::npos);
      REQUIRE(predictions.size() > 100);
      continue;
    }
    CHECK(evaluated == metrics);
    CHECK(etc::read_file(name + ".eval.json") == predictions);
    CHECK(etc::read_file(name + ".json") == predictions);
    CHECK(etc::read_file(name + ".h5") == states);
  }
}

namespace {

struct Raw {
  const char *task, *file;
};

// Prepares two files of generated records, the second cut in its middle, with `size` processes: output and report.
std::string prepared(const TemporaryFolder& folder, const Raw& raw, int size) {
  const std::string output = folder / (std::string(raw.task) + std::to_string(size) + ".h5");
  const Result result = run_several(
      size,
      {program().value(), "prepare", "--task", raw.task, "--split", "train", "--input", folder / "a" / raw.file,
       folder / ("cut_" + std::string(raw.file)), "--vocab", folder / "a/vocab.txt", "--output", output,
       "--list-truncated", "--max-rejects", "1000", "--threads", "2"},
      folder.path());
  INFO(size << " processes: " << result.err);
  REQUIRE((result.code == 0 || result.code == 2));  // 2: the second file cannot be read to its end
  REQUIRE(result.out.find("output: ") != std::string::npos);
  return std::to_string(result.code) + etc::read_file(output) + etc::read_file(output + ".rejects.jsonl");
}

void prepare_in_shares(const Raw& raw) {
  const TemporaryFolder folder;
  for (const char* seed : {"1", "2"}) {
    const std::string sample = folder / (seed[0] == '1' ? "a" : "b");
    REQUIRE(run_several(1,
                        {program().value(), "sample", "--task", raw.task, "--records", "200", "--seed", seed,
                         "--output", sample},
                        folder.path())
                .code == 0);
  }
  // Ids that were there before are rejected or dropped; what is no JSON is rejected, or ends the file.
  const std::string text = etc::read_file(folder / "b" / raw.file) + etc::read_file(folder / "a" / raw.file);
  etc::write_file_atomically(folder / ("cut_" + std::string(raw.file)), text.substr(0, text.size() * 3 / 4));
  CAPTURE(raw.task);
  const std::string one = prepared(folder, raw, 1);
  REQUIRE(one.size() > 1000);
  CHECK(prepared(folder, raw, 3) == one);
}

}  // namespace

TEST_CASE("records are prepared in shares, and output and report have the bytes of one process", "[tasks][processes]") {
  if (!have_mpirun()) return;
  prepare_in_shares({"openkp", "train.jsonl"});  // chooses among all records first
}

TEST_CASE("records of the other tasks are prepared in shares as well", "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  for (const Raw& raw : {Raw{"wikihop", "train.json"}, Raw{"hotpotqa", "train.json"}, Raw{"nq", "train.jsonl"},
                         Raw{"squad", "train.json"}, Raw{"glue", "train.tsv"}}) {
    prepare_in_shares(raw);
  }
}

TEST_CASE("what cannot be prepared in shares says that it is for one process", "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  REQUIRE(run_several(1,
                      {program().value(), "sample", "--task", "pretrain", "--records", "20", "--output",
                       (folder / "a").string()},
                      folder.path())
              .code == 0);
  const auto refused = [&](const Words& more, const std::string& message) {
    Words command = {program().value(),      "prepare",  "--split",      "train", "--vocab",
                     folder / "a/vocab.txt", "--output", folder / "o.h5"};
    command.insert(command.end(), more.begin(), more.end());
    const Result result = run_several(2, command, folder.path());
    CHECK(result.code != 0);
    CHECK_THAT(result.err, Catch::Contains(message));
    CHECK_FALSE(std::filesystem::exists(folder / "o.h5"));
  };
  refused({"--task", "pretrain", "--objective", "mlm_nsp", "--input", folder / "a/train.txt"},
          "expected one process, got 2: task pretrain makes its examples of all records together");
  refused({"--task", "wikihop", "--input", "-"}, "got a stream");
}

TEST_CASE("a program built without MPI says so when it is started as one of several processes", "[tasks][processes]") {
  // This test is linked as the program is, and has no other self beside it.
  REQUIRE_THROWS_WITH(etc::join_processes(), Catch::Contains("built without MPI") && Catch::Contains("-DETC_MPI=ON"));
}

TEST_CASE("a process that no launcher started does not look for others", "[tasks][processes]") {
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  CHECK_FALSE(etc::launched_with_others());
  ::setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  CHECK_FALSE(etc::launched_with_others());
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  CHECK(etc::launched_with_others());
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
}
