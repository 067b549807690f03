// --device on a machine without a GPU, or in a program without the backend.
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/wikihop/examples.h"

using namespace etc;
using Catch::Contains;

namespace {

test::Result benchmark(const test::TemporaryFolder& folder, const std::string& device) {
  return test::run_program({"benchmark", "--preset", "tiny", "--lengths", "64", "--repeats", "1", "--device", device},
                           folder.path());
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("without a GPU --device cuda is an error, and auto says once that the CPU computes", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const test::Result cuda = benchmark(folder, "cuda");
  if (cuda.code == 0) return test::skip("this machine has a GPU");
  CHECK(cuda.code == 1);
  CHECK_THAT(cuda.err, Contains("--device cuda: this program was built without it") || Contains("no device found") ||
                           Contains("the driver is older"));
  CHECK_THAT(cuda.err, Contains("use --device cpu"));
  CHECK(cuda.out.empty());

  const test::Result automatic = benchmark(folder, "auto");
  CHECK(automatic.code == 0);
  CHECK(count(automatic.err, "--device auto: computing on the CPU") == 1);
  CHECK(benchmark(folder, "gpu").code == 2);
}

TEST_CASE("train, eval, predict, encode and benchmark know --device and --deterministic", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  for (const char* command : {"train", "eval", "predict", "encode", "benchmark"}) {
    INFO(command);
    const std::string help = test::run_program({command, "--help"}, folder.path()).out;
    CHECK_THAT(help, Contains("--device") && Contains("--deterministic"));
  }
  test::write_readable_dataset(folder / "train.h5", 0, 8);
  const test::Result refused = test::run_program(
      {"train", "--config", (test::source_folder() / "tasks/configs/wikihop_tiny.json").string(), "--data",
       (folder / "train.h5").string(), "--device", "gpu", "--output", (folder / "run").string()},
      folder.path());
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("training.device: expected cpu, cuda or auto, got gpu"));
  const test::Result misspelt = test::run_program(
      {"train", "--config", (test::source_folder() / "tasks/configs/wikihop_tiny.json").string(), "--data",
       (folder / "train.h5").string(), "--deterministic", "strikt", "--output", (folder / "run").string()},
      folder.path());
  CHECK(misspelt.code == 2);
  CHECK_THAT(misspelt.err,
             Contains("training.deterministic: expected run or strict, got strikt (did you mean strict?)"));
  CHECK(test::run_program({"encode", "--deterministic", "strikt"}, folder.path()).code == 2);
  CHECK(test::run_program(
            {"benchmark", "--preset", "tiny", "--lengths", "64", "--repeats", "1", "--deterministic", "strict"},
            folder.path())
            .code == 0);
}
