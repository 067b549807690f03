// Options declared once: defaults, JSON, checks and texts for --help.
#include "etc_core/base/fields.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"

using namespace etc;

namespace {

enum class Shape { round, square };

struct Base {
  bool flag = true;
};

struct Options : Base {
  std::int64_t size = 8;
  std::uint64_t seed = 1;
  std::optional<std::int64_t> width;
  double rate = 0.5;
  double step = 1e-4;
  std::string device = "cpu";
  std::string path;
  std::vector<std::string> files = {"a"};
  std::vector<std::string> sides = {"left", "right"};
  Shape shape = Shape::square;
  Json ids = Json::object();
};

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      {"flag", &Options::flag, "on or off"},
      {"size", &Options::size, "how large", {.least = 1, .most = 64}},
      {"seed", &Options::seed, "of the generator"},
      {"width", &Options::width, "how wide; none: as large", {.least = 1}, 7},
      {"rate", &Options::rate, "share", {.least = 0, .below = 1}},
      {"step", &Options::step, "size of a step", {.above = 0}},
      {"device", &Options::device, "where", {.words = {"cpu", "cuda", "auto"}}},
      {"path", &Options::path, "a file"},
      FieldEntry<Options>{"files", &Options::files, "more files"}.as_option("--more-files"),
      {"sides", &Options::sides, "which", {.words = {"left", "right"}}},
      {"shape", &Options::shape, "what it looks like", {{"round", Shape::round}, {"square", Shape::square}}},
      {"ids", &Options::ids, "numbers by name"},
  };
  return kFields;
}

std::string message(const Json& json) {
  try {
    fields().read(json, "run.json", "task.");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("defaults are those of the struct, and JSON reads back what was written", "[base]") {
  const Json defaults = fields().defaults();
  CHECK(defaults == parse_json(R"({"flag": true, "size": 8, "seed": 1, "width": null, "rate": 0.5,
      "step": 1e-4, "device": "cpu", "path": "", "files": ["a"], "sides": ["left", "right"], "shape": "square", "ids": {}})",
                               "test"));
  CHECK(fields().to_json(Options{}) == defaults);
  CHECK(fields().read(Json::object(), "test").files == std::vector<std::string>{"a"});

  Options changed;
  changed.flag = false;
  changed.size = 64;
  changed.seed = std::numeric_limits<std::uint64_t>::max();
  changed.width = 3;
  changed.rate = 0;
  changed.step = 2;
  changed.device = "auto";
  changed.path = "p";
  changed.files = {};
  changed.shape = Shape::round;
  changed.ids = {{"pad", 0}};
  const Options read = fields().read(fields().to_json(changed), "test");
  CHECK(fields().to_json(read) == fields().to_json(changed));
  CHECK(!read.flag);
  CHECK(read.seed == changed.seed);
  CHECK(read.width == 3);
  CHECK(read.shape == Shape::round);
  CHECK(read.ids.at("pad") == 0);
}

TEST_CASE("a value of another kind is refused by name with what is expected", "[base]") {
  CHECK(message({{"flag", 1}}) == "run.json: task.flag: expected true or false, got 1");
  CHECK(message({{"size", "8"}}) == "run.json: task.size: expected an integer, got \"8\"");
  CHECK(message({{"size", 1.5}}) == "run.json: task.size: expected an integer, got 1.5");
  CHECK(message({{"size", std::numeric_limits<std::uint64_t>::max()}}) ==
        "run.json: task.size: expected an integer, got 18446744073709551615");
  CHECK(message({{"seed", -1}}) == "run.json: task.seed: expected an integer of at least 0, got -1");
  CHECK(message({{"width", "none"}}) == "run.json: task.width: expected an integer or null, got \"none\"");
  CHECK(message({{"rate", nullptr}}) == "run.json: task.rate: expected a number, got null");
  CHECK(message({{"device", 3}}) == "run.json: task.device: expected cpu, cuda or auto, got 3");
  CHECK(message({{"path", 3}}) == "run.json: task.path: expected a string, got 3");
  CHECK(message({{"files", {"a", 3}}}) == "run.json: task.files: expected a list of strings, got [\"a\",3]");
  CHECK(message({{"shape", true}}) == "run.json: task.shape: expected round or square, got true");
  CHECK(message({{"ids", 3}, {"rate", 0}}).empty());  // any JSON value; an integer is a number
}

TEST_CASE("a value outside its range or words is refused with the range or the nearest word", "[base]") {
  CHECK(message({{"size", 0}}) == "run.json: task.size: expected an integer from 1 to 64, got 0");
  CHECK(message({{"size", 65}}) == "run.json: task.size: expected an integer from 1 to 64, got 65");
  CHECK(message({{"width", 0}}) == "run.json: task.width: expected an integer of at least 1 or null, got 0");
  CHECK(message({{"rate", 1}}) == "run.json: task.rate: expected a number from 0 to below 1, got 1");
  CHECK(message({{"rate", -0.5}}) == "run.json: task.rate: expected a number from 0 to below 1, got -0.5");
  CHECK(message({{"step", 0}}) == "run.json: task.step: expected a number above 0, got 0");
  CHECK(message({{"device", "cud"}}) ==
        "run.json: task.device: expected cpu, cuda or auto, got cud (did you mean cuda?)");
  CHECK(message({{"sides", {"left", "rigth"}}}) ==
        "run.json: task.sides: expected some of left, right, got rigth (did you mean right?)");
  CHECK(message({{"sides", Json::array()}}).empty());
  CHECK(message({{"shape", "squar"}}) ==
        "run.json: task.shape: expected round or square, got squar (did you mean square?)");
  CHECK(fields().read_unchecked({{"size", 0}}, "test").size == 0);
  Options options;
  options.step = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(fields().check(options, "config"), Catch::Contains("config: step: expected a number above 0"));
}

TEST_CASE("a list tells names, help and marks of its keys", "[base]") {
  CHECK(fields().size() == 12);
  CHECK(fields().names().front() == "flag");
  REQUIRE(fields().find("width") != nullptr);
  CHECK(fields().find("width")->mark == 7);
  CHECK(fields().find("width")->kind == FieldKind::optional_integer);
  CHECK(fields().find("step")->help == "size of a step");
  CHECK(fields().find("size")->default_value() == 8);
  CHECK(fields().find("step")->option_name() == "--step");
  CHECK(fields().find("files")->option_name() == "--more-files");
  CHECK(kind_text(*fields().find("width")) == "an integer or null");
  CHECK(fields().find("depth") == nullptr);
  CHECK(Field{.name = "label_smoothing"}.option_name() == "--label-smoothing");
}
