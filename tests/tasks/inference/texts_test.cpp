// etc encode --text: states of plain texts.
#include <cmath>
#include <cstring>
#include <sstream>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/tasks/inference/small_scene.h"

using namespace etc;
using test::SmallScene;
using test::Words;

namespace {

constexpr const char* kTexts =
    "{\"id\": \"a\", \"text\": \"The old harbour is quiet. Nobody is there.\"}\n\"The tower is famous.\"\n";

std::vector<Json> text_lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

// The numbers of a NumPy file of format 1.0, whose header must have this type and shape.
template <typename Number>
std::vector<Number> numbers_of(const std::string& file, const std::string& type, const std::string& shape) {
  const std::string bytes = read_file(file);
  REQUIRE(bytes.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t length = static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  CHECK((10 + length) % 64 == 0);
  CHECK_THAT(bytes.substr(10, length), Catch::Contains("'descr': '" + type + "'") &&
                                           Catch::Contains("(" + shape + ")") &&
                                           Catch::Contains("'fortran_order': False"));
  std::vector<Number> numbers((bytes.size() - 10 - length) / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data() + 10 + length, numbers.size() * sizeof(Number));
  return numbers;
}

}  // namespace

TEST_CASE("texts have states a token, a sentence or a text, in every form of output", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("hotpotqa", ".json");
  const auto encode = [&](const std::string& states, const std::string& output) {
    return scene.run({"encode", "--text", "-", "--model", scene.path("run"), "--states", states, "--output", output},
                     kTexts);
  };
  const std::vector<Json> tokens = text_lines_of(encode("long", "-")), sentences = text_lines_of(encode("global", "-")),
                          means = text_lines_of(encode("mean", "-"));
  REQUIRE(tokens.size() == 2);
  CHECK(tokens[0].at("id") == "a");
  CHECK(tokens[1].at("id") == "1");
  CHECK(sentences[0].at("states").size() == 2);
  CHECK(sentences[1].at("states").size() == 1);
  std::vector<float> rows;
  for (std::size_t t = 0; t < 2; ++t) {
    const Json& states = tokens[t].at("states");
    const std::size_t read = tokens[t].at("tokens").at("read");
    CHECK(tokens[t].at("tokens").at("cut") == 0);
    REQUIRE(states.size() == read + 1);  // and CLS
    for (std::size_t h = 0; h < 32; ++h) {
      double sum = 0;
      for (std::size_t i = 1; i < states.size(); ++i) sum += states[i].at(h).get<double>();
      CHECK(std::abs(sum / static_cast<double>(read) - means[t].at("states").at(h).get<double>()) < 1e-6);
    }
    for (const Json& row : states) {
      for (const Json& number : row) rows.push_back(number);
    }
  }
  encode("long", scene.path("l.npy"));
  const auto count = static_cast<std::int64_t>(rows.size() / 32);
  CHECK(numbers_of<float>(scene.path("l.npy"), "<f4", std::to_string(count) + ", 32") == rows);
  CHECK(numbers_of<std::int64_t>(scene.path("l.npy.offsets.npy"), "<i8", "3,") ==
        std::vector<std::int64_t>{0, std::ssize(tokens[0].at("states")), count});
  encode("mean", scene.path("m.npy"));
  CHECK(numbers_of<float>(scene.path("m.npy"), "<f4", "2, 32").size() == 64);
  CHECK(!std::filesystem::exists(scene.path("m.npy.offsets.npy")));
  encode("mean", scene.path("m.json"));
  const Json array = read_json_file(scene.path("m.json"));
  REQUIRE(array.size() == 2);
  CHECK(array[0] == means[0]);
  CHECK(array[1] == means[1]);
  encode("mean", scene.path("m.h5"));
  CHECK_THAT(scene.run({"info", scene.path("m.h5")}), Catch::Contains("text_states"));

  // A text that is too long is truncated; a text encoded alone has the same states as one encoded beside others.
  const Json cut = Json::parse(
      scene.run({"encode", "--text", "-", "--model", scene.path("run"), "--max-long-tokens", "5", "--output", "-"},
                "\"The old harbour is quiet. Nobody is there.\""));
  CHECK(cut.at("tokens").at("read") == 4);
  CHECK(cut.at("tokens").at("cut") == tokens[0].at("tokens").at("read").get<int>() - 4);
  CHECK(text_lines_of(scene.run({"encode", "--text", "-", "--model", scene.path("run"), "--output", "-"},
                                "\"The tower is famous.\""))[0]
            .at("states") == means[1].at("states"));
}

TEST_CASE("texts and outputs that cannot be meant are refused with the reason", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("hotpotqa", ".json");
  const auto refused = [&](const std::string& input, const std::string& output, int code, const Words& more = {}) {
    Words words = {"encode", "--text", "-", "--model", scene.path("run"), "--output", output};
    words.insert(words.end(), more.begin(), more.end());
    const test::Result result = scene.try_run(words, input);
    INFO(result.err);
    CHECK(result.code == code);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK_THAT(refused("7\n", "-", 1), Catch::Contains("standard input: line 1: expected a string, or an object"));
  CHECK_THAT(refused("{\"text\": 7}\n", "-", 1), Catch::Contains("line 1: expected a string"));
  CHECK_THAT(refused("\"\"\n", "-", 1), Catch::Contains("line 1: the document is empty"));
  CHECK_THAT(refused("\"a\n", "-", 1), Catch::Contains("json_syntax") && Catch::Contains("jq -Rs . FILE"));
  CHECK_THAT(refused("", scene.path("a.npy"), 1), Catch::Contains("the input holds no text"));
  CHECK(!std::filesystem::exists(scene.path("a.npy")));
  CHECK_THAT(refused("\"a\"", scene.path("a.csv"), 2), Catch::Contains("expected -, or a name that ends in"));
  CHECK_THAT(refused("\"a\"", "-", 2, {"--max-long-tokens", "2"}), Catch::Contains("expected at least 3, got 2"));
  CHECK_THAT(refused("\"a\"", "-", 2, {"--data", "d.h5"}), Catch::Contains("expected either"));
}
