// Commands that run a model in several processes write the same bytes as one process.
#include <csignal>

#include "etc_core/comm/launch.h"
#include "tests/support/folders.h"
#include "tests/tasks/processes/mpirun.h"
#include "tests/tasks/train/tiny_training.h"

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

// A task's raw files as `etc sample` writes them, and how they are prepared.
struct Raw {
  std::string task;
  std::vector<std::pair<std::string, std::string>> inputs;  // option, file
  std::string vocab = "vocab.txt";
  Words options = {};
  bool cut = true;  // truncates the second files; not possible if they belong together line by line
};

const std::vector<Raw>& whole_texts() {
  static const std::vector<Raw> kTasks = {
      {"pretrain", {{"--input", "train.txt"}}, "vocab.txt", {"--objective", "mlm_nsp", "--dupe-factor", "3"}},
      {"lm", {{"--input", "train.txt"}}, "vocab.chars", {"--text-ends", "lines", "--segment-length", "16"}},
      {"translation",
       {{"--source", "train.source"}, {"--target", "train.target"}},
       "vocab.words",
       {"--subword", "word", "--max-words", "20"},
       false}};
  return kTasks;
}

// The command that prepares two files of generated records.
Words preparing(const TemporaryFolder& folder, const Raw& raw, const std::string& output) {
  Words command = {
      program().value(),        "prepare",  "--task", raw.task,           "--split",       "train", "--vocab",
      folder / "a" / raw.vocab, "--output", output,   "--list-truncated", "--max-rejects", "1000"};
  command.insert(command.end(), {"--threads", "2"});
  for (const auto& [option, file] : raw.inputs) {
    command.insert(command.end(), {option, folder / "a" / file, folder / ("second_" + file)});
  }
  return joined(command, raw.options);
}

// Output and report after the command has run with `size` processes.
std::string prepared(const TemporaryFolder& folder, const Raw& raw, int size, const std::string& name) {
  const std::string output = folder / (raw.task + name + ".h5");
  const Result result = run_several(size, preparing(folder, raw, output), folder.path());
  INFO(size << " processes: " << result.err);
  REQUIRE((result.code == 0 || result.code == 2));  // 2: the second file cannot be read to its end
  REQUIRE(result.out.find("output: ") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(output + ".parts"));
  return std::to_string(result.code) + etc::read_file(output) + etc::read_file(output + ".rejects.jsonl");
}

// Writes generated records into folders a and b, and the second files: the records of b and a, repeated `times` times.
void write_raw(const TemporaryFolder& folder, const Raw& raw, int times = 1) {
  for (const std::string seed : {"1", "2"}) {
    const std::string sample = folder / (seed == "1" ? "a" : "b");
    REQUIRE(run_several(1,
                        {program().value(), "sample", "--task", raw.task, "--records", "200", "--seed", seed,
                         "--output", sample},
                        folder.path())
                .code == 0);
  }
  for (const auto& [option, file] : raw.inputs) {
    // The ids of the first files occur again, so these records are rejected or dropped; the truncated end is no valid
    // JSON and is rejected, or ends the file.
    std::string text;
    for (int i = 0; i < times; ++i) text += etc::read_file(folder / "b" / file) + etc::read_file(folder / "a" / file);
    if (raw.cut) text.resize(text.size() * 3 / 4);
    etc::test::write_file(folder / ("second_" + file), text);
  }
}

void prepare_in_shares(const Raw& raw, const std::vector<int>& sizes) {
  const TemporaryFolder folder;
  write_raw(folder, raw);
  CAPTURE(raw.task);
  const std::string one = prepared(folder, raw, 1, "1");
  REQUIRE(one.size() > 1000);
  for (const int size : sizes) {
    CAPTURE(size);
    CHECK(prepared(folder, raw, size, std::to_string(size)) == one);
  }
}

}  // namespace

TEST_CASE("records are prepared in shares, and output and report have the bytes of one process", "[tasks][processes]") {
  if (!have_mpirun()) return;
  prepare_in_shares({"openkp", {{"--input", "train.jsonl"}}}, {3});  // chooses among all records first
}

TEST_CASE("whole texts are prepared in shares as well", "[tasks][processes]") {
  if (!have_mpirun()) return;
  prepare_in_shares(whole_texts()[0], {4});
  prepare_in_shares(whole_texts()[1], {2});
}

TEST_CASE("records and texts of the other tasks and forms are prepared in shares", "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  const std::string input = "--input";
  for (const Raw& raw :
       {Raw{"wikihop", {{input, "train.json"}}}, Raw{"hotpotqa", {{input, "train.json"}}},
        Raw{"nq", {{input, "train.jsonl"}}}, Raw{"squad", {{input, "train.json"}}}, Raw{"glue", {{input, "train.tsv"}}},
        Raw{"pretrain", {{input, "train.txt"}}, "vocab.txt", {"--objective", "mlm", "--dynamic-masking", "true"}},
        Raw{"pretrain",
            {{input, "train.txt"}},
            "vocab.txt",
            {"--objective", "mlm_cpc", "--document-ends", "files", "--lines", "wrapped"}},
        whole_texts()[0], whole_texts()[1], whole_texts()[2]}) {
    prepare_in_shares(raw, {2, 3, 4});
  }
}

TEST_CASE("a killed preparation goes on behind its finished files, with any number of processes, to equal bytes",
          "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  namespace fs = std::filesystem;
  for (Raw raw : whole_texts()) {
    const TemporaryFolder folder;
    raw.cut = false;
    write_raw(folder, raw, 30);
    CAPTURE(raw.task);
    const std::string one = prepared(folder, raw, 1, "1");
    const fs::path output = folder / (raw.task + "x.h5"), parts = output.string() + ".parts";
    const auto has_part = [&] {
      std::error_code none;  // the folder may not exist yet
      for (const auto& entry : fs::directory_iterator(parts, none)) {
        if (entry.path().extension() == ".json") return true;
      }
      return false;
    };
    for (const int size : {1, 2}) {
      const Words command = preparing(folder, raw, output);
      {
        Child run(size == 1 ? command : several(size, command), folder / "run");
        REQUIRE(wait_for(20, [&] { return has_part() || !run.running(); }));
        REQUIRE(run.running());
        if (size == 1) {
          run.send(SIGKILL);
        } else {
          ::kill(processes_of(run.pid(), size).at(1), SIGKILL);
        }
        CHECK(run.wait() != 0);
      }
      REQUIRE(has_part());
      REQUIRE_FALSE(fs::exists(output));
      CHECK(prepared(folder, raw, 3 - size, "x") == one);
      const std::string said = etc::read_file(folder / "program.err");
      CHECK_THAT(said, Catch::Contains("from an earlier run"));
      fs::remove(output);
    }
  }
}

TEST_CASE("what each process has to read is no stream", "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  etc::test::write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  for (const std::string task : {"wikihop", "pretrain"}) {
    const Result result = run_several(2,
                                      {program().value(), "prepare", "--task", task, "--split", "train", "--vocab",
                                       folder / "vocab.txt", "--input", "-", "--output", folder / "o.h5"},
                                      folder.path());
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Catch::Contains("got a stream"));
    CHECK_FALSE(std::filesystem::exists(folder / "o.h5"));
  }
}

TEST_CASE("a program built without MPI says so when it is started as one of several processes", "[tasks][processes]") {
  // This test is linked without MPI like the program, and no executable with the suffix _mpi lies beside it.
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
