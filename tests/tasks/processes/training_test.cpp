// A run's files must not depend on how many processes made it.
#include "tests/tasks/processes/mpirun.h"

namespace {

using namespace etc::test;
namespace fs = std::filesystem;

// Trains in `size` processes; returns the error output.
std::string trained(const fs::path& folder, int size, Words command, const Words& more = {}) {
  command.insert(command.end(), more.begin(), more.end());
  const Result result = run_several(size, command, folder);
  INFO(size << " processes: " << result.err);
  REQUIRE(result.code == 0);
  return result.err;
}

Words with(Words command, const Words& more) {
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

// Trains by the command in 1, 2 and 3 processes; all runs must be equal.
void check_same_bits(const TemporaryFolder& folder, const Words& command) {
  std::string one;
  for (const int size : {1, 2, 3}) {
    const fs::path run = folder / ("run" + std::to_string(size));
    trained(folder.path(), size, with(command, {"--threads", "1", "--output", run}));
    if (size == 1) one = bits_of(run);
    CAPTURE(size);
    CHECK(bits_of(run) == one);
  }
}

}  // namespace

TEST_CASE("weights, moments and metrics are bit-equal for 1, 2 and 4 processes", "[tasks][processes]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_data(folder.path());
  const auto bits = [&](int size, const Words& more) {
    const std::string run = "run" + std::to_string(size);
    trained(folder.path(), size, training_command(folder.path(), run, "8", "3"), more);
    return bits_of(folder / run);
  };
  // Residual scores, dropout, and bf16 where available. Four examples make two to four micro-batches, so some of four
  // processes may have none; four processes shard the moments, and two send gradients in many buckets.
  const std::string one = bits(1, {});
  CHECK(bits(2, {"--bucket-bytes", "4000"}) == one);
  CHECK(bits(4, {"--shard-moments"}) == one);
}

TEST_CASE("LAMB, checkpointing, batches of one micro-batch and a model without scores are bit-equal as well",
          "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  constexpr const char* kScores = "--use-residual-attention";  // alone as a variant: trains without it
  const std::vector<Words> variants = {
      {kScores},
      {"--optimizer", "lamb", "--compute", "fp32", "--grad-checkpointing-period", "1", "--bucket-bytes", "4000"},
      {"--micro-batch-tokens", "0", "--optimizer", "lamb", "--shard-moments", "--bucket-bytes", "1"},
      {"--eval-batches", "1"},
      {"--batch-size", "13", "--use-running-mean", "--bucket-bytes", "4000"},
  };
  for (const Words& variant : variants) {
    const TemporaryFolder folder;
    write_data(folder.path());
    std::string one;
    for (const int size : {1, 2, 3, 4, 8}) {
      const std::string run = "run" + std::to_string(size);
      // Options given twice are an error, so the variant's options replace those of the command.
      Words command = training_command(folder.path(), run, "8", "3");
      for (const std::string& word : variant) {
        const auto found = std::find(command.begin(), command.end(), word);
        if (word.starts_with("--") && found != command.end()) command.erase(found, found + (word == kScores ? 1 : 2));
      }
      trained(folder.path(), size, variant[0] == kScores ? command : with(command, variant));
      if (size == 1) one = bits_of(folder / run);
      CAPTURE(size, variant);
      CHECK(bits_of(folder / run) == one);
    }
  }
}

TEST_CASE("a run begun by four processes goes on with one, bit for bit", "[tasks][processes]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_data(folder.path());
  trained(folder.path(), 1, training_command(folder.path(), "whole", "9", "3"));
  const Words command = training_command(folder.path(), "parts", "9", "3");
  {
    // The run is stopped by a signal to one of the processes.
    Child run(several(4, with(command, {"--shard-moments"})), folder / "stopped");
    const std::vector<pid_t> ranks = processes_of(run.pid(), 4);
    REQUIRE(ranks.size() == 4);
    REQUIRE(wait_for(20, [&] { return fs::exists(folder / "parts/last") || !run.running(); }));
    ::kill(ranks[2], SIGTERM);
    const int code = run.wait();
    const std::string said = etc::read_file(folder / "stopped.err");
    INFO(said);
    // It may have finished before the signal.
    CHECK((code == 0 || said.find("SIGTERM: stopped at step") != std::string::npos));
  }
  trained(folder.path(), 1, command);
  CHECK(bits_of(folder / "parts") == bits_of(folder / "whole"));
}

TEST_CASE("ADMIN's first batch, batches by tokens and BLEU are the same in 1, 2 and 3 processes",
          "[tasks][processes]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  const std::string program = etc::test::program().value(), here = folder.path();
  const auto alone = [&](const Words& words) { trained(folder.path(), 1, with({program}, words)); };
  alone({"sample", "--task", "translation", "--records", "60", "--output", here + "/s"});
  for (const std::string split : {"train", "dev"}) {
    alone({"prepare", "--task", "translation", "--split", split, "--subword", "word", "--vocab",
           here + "/s/vocab.words", "--source", here + "/s/" + split + ".source", "--target",
           here + "/s/" + split + ".target", "--output", here + "/" + split + ".h5"});
  }
  // Batches of two micro-batches: the first of three processes has none.
  check_same_bits(folder, {program,
                           "train",
                           "--task",
                           "translation",
                           "--model-kind",
                           "seq2seq",
                           "--norm",
                           "admin",
                           "--use-residual-attention",
                           "--hidden-size",
                           "16",
                           "--num-hidden-layers",
                           "2",
                           "--num-decoder-layers",
                           "2",
                           "--intermediate-size",
                           "32",
                           "--num-attention-heads",
                           "2",
                           "--data",
                           here + "/train.h5",
                           "--eval-data",
                           here + "/dev.h5",
                           "--vocab",
                           here + "/s/vocab.words",
                           "--tokens-per-batch",
                           "300",
                           "--micro-batch-tokens",
                           "160",
                           "--steps",
                           "4",
                           "--bleu-beam",
                           "2"});
}

// An evaluation compares the sentences of a micro-batch; its 96 examples are more than one process reads at once (64).
TEST_CASE("sentences are compared in 1, 2 and 3 processes, bit for bit, while training and in an evaluation",
          "[tasks][processes]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  const std::string program = etc::test::program().value(), here = folder.path();
  const auto alone = [&](const Words& words) { trained(folder.path(), 1, with({program}, words)); };
  alone({"sample", "--task", "pretrain", "--records", "20", "--output", here + "/s"});
  alone({"prepare", "--task", "pretrain", "--objective", "mlm_cpc", "--max-seq-length", "64", "--split", "train",
         "--vocab", here + "/s/vocab.txt", "--input", here + "/s/train.txt", "--output", here + "/train.h5"});
  check_same_bits(folder, {program,
                           "train",
                           "--task",
                           "pretrain",
                           "--objective",
                           "mlm_cpc",
                           "--hidden-size",
                           "16",
                           "--num-hidden-layers",
                           "1",
                           "--intermediate-size",
                           "32",
                           "--num-attention-heads",
                           "2",
                           "--local-radius",
                           "8",
                           "--data",
                           here + "/train.h5",
                           "--eval-data",
                           here + "/train.h5",
                           "--vocab",
                           here + "/s/vocab.txt",
                           "--batch-size",
                           "8",
                           "--eval-batches",
                           "12",
                           "--micro-batch-tokens",
                           "130",
                           "--steps",
                           "3"});
}

TEST_CASE("streams with memory move from process to process, and a run begun by three goes on with one and two",
          "[tasks][processes]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  const std::string program = etc::test::program().value(), here = folder.path();
  const auto run = [&](int size, const Words& words) { return trained(folder.path(), size, with({program}, words)); };
  run(1, {"sample", "--task", "lm", "--records", "60", "--distance", "12", "--output", here + "/s"});
  for (const std::string split : {"train", "dev"}) {
    // Texts of 15 to 21 characters: segments of 8 and fewer, so that some micro-batches have two examples and others
    // more.
    run(1, {"prepare", "--task", "lm", "--split", split, "--input", here + "/s/" + split + ".txt", "--vocab",
            here + "/s/vocab.chars", "--text-ends", "lines", "--segment-length", "8", "--output",
            here + "/" + split + ".h5"});
  }
  const auto training = [&](const std::string& output) {
    return Words{"train",
                 "--config",
                 (source_folder() / "tasks/configs/lm_tiny.json").string(),
                 "--data",
                 here + "/train.h5",
                 "--eval-data",
                 here + "/dev.h5",
                 "--vocab",
                 here + "/s/vocab.chars",
                 "--batch-size",
                 "7",
                 "--micro-batch-tokens",
                 "20",
                 "--threads",
                 "1",
                 "--use-residual-attention",
                 "--eval-every",
                 "4",
                 "--save-every",
                 "3",
                 "--output",
                 here + "/" + output,
                 "--steps"};
  };
  run(1, with(training("one"), {"8"}));
  run(3, with(training("three"), {"8"}));
  CHECK(bits_of(folder / "three") == bits_of(folder / "one"));
  // Four steps by three processes, then three by one process, then one by two.
  run(3, with(training("parts"), {"4", "--schedule", "inverse_sqrt", "--warmup-steps", "2"}));
  run(1, with(training("parts"), {"7", "--schedule", "inverse_sqrt", "--warmup-steps", "2"}));
  run(2, with(training("parts"), {"8", "--schedule", "inverse_sqrt", "--warmup-steps", "2"}));
  run(1, with(training("steady"), {"8", "--schedule", "inverse_sqrt", "--warmup-steps", "2"}));
  CHECK(etc::read_file(folder / "parts/last/model.safetensors") ==
        etc::read_file(folder / "steady/last/model.safetensors"));
}

TEST_CASE("an emulated device trains the same bits in 1, 2 and 3 processes, through the hosts and linked",
          "[tasks][processes][cuda]") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  write_readable_dataset(folder / "train.h5", 0, 8);
  const auto train = [&](int size, const std::string& how) {
    const std::string run = folder / (how + std::to_string(size));
    trained(folder.path(), size, {ETC_EMULATED_TRAINING, folder / "train.h5", run, how});
    return bits_of(run);
  };
  const auto alone = train(1, "hosts");
  CHECK(train(2, "hosts") == alone);
  CHECK(train(2, "linked") == alone);
  CHECK(train(3, "linked") == alone);
}
