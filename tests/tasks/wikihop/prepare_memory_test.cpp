// `etc prepare` without enough memory for a record: the run ends with this error, and no record is reported as faulty.
#include "tests/tasks/wikihop/prepare_scene.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("a record that memory does not suffice for ends the run and is not rejected", "[wikihop]") {
  if (without_program()) return;
  if (!kMemoryMeansSomething) return skip("the sanitizer reserves more than any limit");
  const Scene scene;
  constexpr std::size_t kSentences = 200'000;
  Json large = small_record(2);
  std::string document;
  for (std::size_t i = 0; i < kSentences; ++i) document += "He left the city of New York. ";
  large["supports"].push_back(document);
  scene.write("in.json", array_of({json_line(small_record(1)), json_line(large)}));
  std::string command = "'" + *program() + "'";
  for (const std::string& word : scene.arguments({"--threads", "1"})) command += " '" + word + "'";
  int failed_at_record = 0, succeeded = 0;
  constexpr int kSteps = 40;
  for (int step = 0; step < kSteps && succeeded < 2; ++step) {
    const int megabytes = 120 + 10 * step;
    Child child({"sh", "-c", fmt::format("ulimit -v {}; exec {}", megabytes * 1024, command)}, scene.at("limited"));
    const int code = child.wait();
    const std::string out = scene.bytes("limited.out"), err = scene.bytes("limited.err");
    CAPTURE(megabytes, code, out, err);
    CHECK(!has(err, "beyond the range"));
    CHECK(!has(out, "rejected: 1"));
    if (code == 0) {
      ++succeeded;
      CHECK(has(out, "examples: 2\n"));
      continue;
    }
    if (has(err, "in.json: record 1 at byte ")) {
      ++failed_at_record;
      CHECK(code == 1);
      CHECK(has(err, "memory does not suffice"));
      CHECK(scene.written().empty());
    }
  }
  CHECK(failed_at_record > 0);
  CHECK(succeeded == 2);
}
