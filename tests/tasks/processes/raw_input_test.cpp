// Commands that read raw input in several processes write the same bytes as one process.
#include <set>

#include "tests/support/folders.h"
#include "tests/support/h5_edit.h"
#include "tests/tasks/inference/small_scene.h"
#include "tests/tasks/processes/mpirun.h"

using namespace etc::test;
namespace fs = std::filesystem;

namespace {

// A model, records of its task, and the program run on them with any number of processes.
struct RawScene {
  SmallScene small{"hotpotqa", ".json"};
  std::string folder = small.path("several"), records = small.path("sample/train.json");

  RawScene() { fs::create_directories(folder); }

  // Standard output of the command, and what it wrote to `output`, if anything. input: a file for its standard input.
  std::string result(int size, const Words& arguments, const std::string& output = "",
                     const std::string& input = "/dev/null") const {
    Words command = {"sh", "-c", "exec \"$0\" \"$@\" <" + input};
    Words run = {program().value()};
    run.insert(run.end(), arguments.begin(), arguments.end());
    if (size > 1) run = several(size, run);
    command.insert(command.end(), run.begin(), run.end());
    const Result result = run_several(1, command, folder);
    INFO(size << " processes: " << result.err);
    REQUIRE(result.code == 0);
    std::string bytes = result.out;
    if (output.empty()) return bytes;
    bytes += etc::read_file(output);
    fs::remove(output);
    return bytes;
  }

  void check_equal(const std::set<int>& sizes, const Words& arguments, const std::string& output = "",
                   const std::string& input = "/dev/null") const {
    const std::string one = result(1, arguments, output, input);
    REQUIRE(one.size() > 100);
    for (const int size : sizes) {
      CAPTURE(size, arguments);
      CHECK(result(size, arguments, output, input) == one);
    }
  }

  Words predict(const std::string& input, const Words& more) const {
    return joined({"predict", "--model", small.path("run"), "--input", input}, more);
  }
  Words encode(const std::string& what, const std::string& input, const Words& more) const {
    return joined({"encode", "--model", small.path("run"), what, input}, more);
  }

  // Nine texts, one per line.
  std::string texts() const {
    const std::string file = small.path("texts.jsonl");
    std::string lines;
    for (int i = 0; i < 9; ++i) {
      lines += "{\"id\": \"t" + std::to_string(i) + "\", \"text\": \"The harbour is old.";
      for (int more = 0; more < i; ++more) lines += " The tower is famous.";
      lines += "\"}\n";
    }
    etc::test::write_file(file, lines);
    return file;
  }
};

}  // namespace

TEST_CASE("raw records are predicted and texts encoded in shares, to the bytes of one process", "[tasks][processes]") {
  if (!have_mpirun()) return;
  const RawScene scene;
  const std::string output = scene.folder + "/out.json";
  scene.check_equal({4}, scene.predict(scene.records, {"--output", output}), output);
  scene.check_equal({2}, scene.encode("--text", scene.texts(), {"--states", "mean", "--output", "-"}));
}

TEST_CASE("every form of raw input and of its output has the bytes of one process", "[tasks][processes][slow]") {
  if (!have_mpirun()) return;
  const RawScene scene;
  const std::string& folder = scene.folder;
  const std::set<int> sizes = {2, 4};
  // An invalid record gets an answer as well.
  etc::Json records = etc::read_json_file(scene.records);
  REQUIRE(records.size() > 4);
  records[3].erase("question");
  const std::string broken = folder + "/broken.jsonl";
  std::string lines;
  for (const etc::Json& record : records) lines += etc::json_line(record) + "\n";
  etc::test::write_file(broken, lines);

  const std::string output = folder + "/o.json";
  scene.check_equal({2}, scene.predict(scene.records, {"--output", output}), output);
  scene.check_equal(sizes, scene.predict(scene.records, {"--answers", "-"}));
  scene.check_equal(sizes, scene.predict("-", {"--answers", "-"}), "", scene.records);
  scene.check_equal(sizes, scene.predict("-", {"--output", output}), output, scene.records);
  scene.check_equal(sizes, scene.predict("-", {"--output", "-"}), "", scene.records);
  scene.check_equal(sizes, scene.predict(scene.records, {"--show", "2"}));
  for (const std::string states : {"long", "global", "mean"}) {
    const std::string h5 = folder + "/" + states + ".h5", npy = folder + "/" + states + ".npy";
    scene.check_equal(sizes, scene.encode("--text", scene.texts(), {"--states", states, "--output", h5}), h5);
    scene.check_equal(sizes, scene.encode("--text", scene.texts(), {"--states", states, "--output", npy}), npy);
  }
  scene.check_equal(sizes, scene.encode("--text", "-", {"--output", "-"}), "", scene.texts());

  const std::string arrays = folder + "/in.h5", of_arrays = folder + "/arrays.h5";
  {
    H5Edit file(arrays);
    file.put_integers("/inputs/token_ids", std::vector<std::int64_t>{5, 6, 7, 8, 9, 10, 8, 7, 6, 5, 4, 3}, 4, true,
                      {3, 4}, {});
    file.put_integers("/inputs/global_token_ids", std::vector<std::int64_t>{1, 2, 1, 2, 1, 2}, 4, true, {3, 2}, {});
  }
  scene.check_equal(sizes, scene.encode("--inputs", arrays, {"--output", of_arrays, "--all-layers"}), of_arrays);

  // Predictions are scored by one process.
  scene.small.run(scene.predict(scene.records, {"--output", output}));
  scene.check_equal(sizes, {"eval", "--task", "hotpotqa", "--predictions", output, "--gold", scene.records, "--json"});

  // With one bad record, its answer and exit code 1 are the same for any number of processes.
  const Words answers = joined({program().value()}, scene.predict(broken, {"--answers", folder + "/a.jsonl"}));
  std::string one;
  for (const int size : {1, 2, 4}) {
    const Result result = run_several(size, answers, folder);
    INFO(result.err);
    CHECK(result.code == 1);
    const std::string written = etc::read_file(folder + "/a.jsonl");
    if (size == 1) one = written;
    CHECK(written == one);
  }
  CHECK_THAT(one, Catch::Contains("error") && Catch::Contains("question"));
}
