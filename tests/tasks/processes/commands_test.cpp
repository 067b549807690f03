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
