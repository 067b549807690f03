// `etc prepare` as a program at its limits: a full disk, large files, one huge record.
#include <fstream>

#include "tests/tasks/wikihop/prepare_scene.h"

using namespace etc;
using namespace etc::test;
namespace fs = std::filesystem;

TEST_CASE("a full disk is an error that leaves nothing behind", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  scene.write("in.json", array_of_small_records(0, 2000, 600));
  scene.write("small.json", array_of_small_records(5000, 10));
  const auto limited = [&](const Words& extra) {
    // A write beyond the limit fails with EFBIG instead of killing the program.
    Words command = {"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\"", *program()};
    const Words rest = scene.arguments(extra);
    command.insert(command.end(), rest.begin(), rest.end());
    Child child(command, scene.at("limited"));
    return child.wait();
  };
  CHECK(limited({}) == 1);
  CAPTURE(scene.bytes("limited.err"));
  CHECK(has(scene.bytes("limited.err"), "out.h5"));
  CHECK(scene.written().empty());
  CHECK(limited({"--input", scene.at("in.json"), scene.at("small.json")}) == 1);
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(scene.at("in.json")).parent_path())) {
    CHECK(entry.path().extension() != ".tmp");
    CHECK(entry.path().extension() != ".h5");
  }
}

TEST_CASE("memory does not grow with the file", "[wikihop][slow]") {
  if (without_program() || !kMemoryMeansSomething) return;
  const Scene scene;
  std::int64_t peaks[2];
  for (int i = 0; i < 2; ++i) {
    const std::int64_t records = i == 0 ? 1000 : 10000;  // about 5 and 50 MB
    {
      std::ofstream file(scene.at("in.json"));
      for (std::int64_t r = 0; r < records; r += 100) {
        std::string text = array_of_small_records(r, 100, 5000);
        text.resize(text.size() - 2);  // "]\n"
        file << (r == 0 ? text : "," + text.substr(1));
      }
      file << "]";
    }
    const Result result = scene.prepare({"--threads", "2"});
    REQUIRE(result.code == 0);
    peaks[i] = result.peak_bytes;
  }
  std::printf("peak memory: %.1f MB for 5 MB, %.1f MB for 50 MB\n", 1e-6 * static_cast<double>(peaks[0]),
              1e-6 * static_cast<double>(peaks[1]));
  CHECK(static_cast<double>(peaks[1]) < 1.5 * static_cast<double>(peaks[0]));
}

TEST_CASE("one record of 100 MB is prepared in memory bounded by its size", "[wikihop][slow]") {
  if (without_program()) return;
  const Scene scene;
  constexpr std::int64_t kBytes = 100000000;
  for (const bool one_sentence : {false, true}) {
    {
      std::ofstream file(scene.at("in.json"));
      file << "["
           << R"({"id": "WH_train_0", "query": "country oslo", "answer": "norway", )"
           << R"("candidates": ["norway", "new york"], "supports": [")";
      const std::string sentence = one_sentence ? "he left the city of new york, " : "He left the city of New York. ";
      std::string block;
      while (block.size() < 1000000) block += sentence;
      for (std::int64_t size = 0; size < kBytes; size += static_cast<std::int64_t>(block.size())) file << block;
      file << "\"]}]";
    }
    const Result result = scene.prepare();
    CAPTURE(one_sentence, result.out, result.err);
    std::printf("peak memory: %.0f MB for a record of 100 MB (%s)\n", 1e-6 * static_cast<double>(result.peak_bytes),
                one_sentence ? "one sentence" : "many sentences");
    CHECK(result.code == 0);
    if (kMemoryMeansSomething) CHECK(result.peak_bytes < 6 * kBytes);
  }
}
