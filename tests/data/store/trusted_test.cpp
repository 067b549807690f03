// Checks the writer with a trusted reader and the reader with a trusted writer (h5py): a round trip through our own two
// would hide a mistake that both make.
#include <string>

#include "data/dataset_info.h"
#include "tests/data/store/samples.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/python.h"

using namespace etc;
using namespace etc::data;
using namespace etc::test;

namespace {

std::vector<Example> mixed_examples() {
  std::vector<Example> rows{worked_example()};
  for (std::int64_t i = 0; i < 300; ++i) rows.push_back(sample_example(i, 600));
  return rows;
}

std::vector<Fault> mixed_faults() {
  std::vector<Fault> faults;
  for (std::int64_t i = 0; i < 5; ++i) faults.push_back(sample_fault(i));
  return faults;
}

const char* kind_name(FeatureKind kind) {
  static constexpr const char* kNames[] = {"scalar", "ragged", "string", "strings"};
  return kNames[static_cast<int>(kind)];
}

const char* type_name(StoredType type) {
  static constexpr const char* kNames[] = {"u8", "i8", "i16", "i32", "i64", "u32", "f32"};
  return kNames[static_cast<int>(type)];
}

Json description(const std::vector<FeatureSpec>& specs) {
  Json features = Json::array();
  for (const FeatureSpec& spec : specs) {
    Json feature{{"name", spec.name}, {"kind", kind_name(spec.kind)}, {"type", type_name(spec.type)}};
    feature["align"] = spec.align;
    if (spec.missing_value) feature["missing_value"] = *spec.missing_value;
    if (const auto* number = std::get_if<std::int64_t>(&spec.pad_value)) feature["pad_value"] = *number;
    if (const auto* word = std::get_if<std::string>(&spec.pad_value)) feature["pad_value"] = *word;
    features.push_back(feature);
  }
  return features;
}

Json description(const Example& example) {
  Json row = Json::object();
  for (const auto& [name, value] : example) std::visit([&](const auto& held) { row[name] = held; }, value);
  return row;
}

// The description that the script reads (format: see its head).
Json description(const std::vector<Example>& examples, const std::vector<Fault>& faults) {
  Json rows = Json::array(), rejects = Json::array();
  std::size_t longest_long = 0, longest_global = 0;
  for (const Example& example : examples) {
    const Json row = description(example);
    longest_long = std::max(longest_long, row["long_token_ids"].size());
    longest_global = std::max(longest_global, row["global_token_ids"].size());
    rows.push_back(row);
  }
  for (const Fault& fault : faults) {
    rejects.push_back({{"file", fault.file},
                       {"record_index", fault.record_index},
                       {"byte_offset", fault.byte_offset},
                       {"id", fault.id},
                       {"field", fault.field},
                       {"code", fault.code},
                       {"severity", severity_text(fault.severity)},
                       {"message", fault.message}});
  }
  const DatasetInfo info = sample_info();
  const Json attributes{
      {"task", info.task},
      {"format_version", 1},
      {"split", info.split},
      {"vocab_sha256", info.vocab_sha256},
      {"preprocess_config", json_line(info.preprocess_config)},
      {"n_input_records", examples.size() + faults.size()},
      {"n_examples", examples.size()},
      {"n_rejected", faults.size()},
      {"n_dropped", 0},
      {"source_files", R"([{"bytes":12345,"name":"train.json","sha256":")" + std::string(64, 'b') + R"("}])"},
      {"labelled", 1},
      {"unicode_version", info.unicode_version}};
  return {{"features", description(sample_schema().features)},
          {"attributes", attributes},
          {"examples", rows},
          {"faults", rejects},
          {"lengths", {{"max_long_len", longest_long}, {"max_global_len", longest_global}}}};
}

// Runs the script on a.h5 and description.json of the folder and returns its exit status.
int run_script(const std::string& python, const char* action, const TemporaryFolder& folder, const char* output = "") {
  const auto script = source_folder() / "tests" / "support" / "check_dataset.py";
  return run_python(python, "'" + script.string() + "' " + action + " '" + (folder / "a.h5").string() + "' '" +
                                (folder / "description.json").string() + "'" + output);
}

}  // namespace

TEST_CASE("a trusted reader finds every detail of the layout in a written file", "[data][store]") {
  const auto python = python_with("h5py, numpy");
  if (!python) return skip("no python3 with h5py");
  const TemporaryFolder folder;
  for (const auto& [examples, faults] :
       {std::pair(mixed_examples(), mixed_faults()), std::pair(std::vector<Example>{}, std::vector<Fault>{})}) {
    write_examples(folder / "a.h5", examples, faults);
    test::write_file(folder / "description.json", json_line(description(examples, faults)));
    CHECK(run_script(*python, "check", folder) == 0);
  }
  // The script must fail on a wrong description.
  test::write_file(folder / "description.json", json_line(description(mixed_examples(), mixed_faults())));
  CHECK(run_script(*python, "check", folder, " 2>/dev/null") != 0);
}

namespace {

// Two documents with three and no annotations.
const std::vector<FeatureSpec> kGoldFeatures{
    {"example_id", FeatureKind::scalar, StoredType::i64, "", {}, {}},
    {"long_start", FeatureKind::ragged, StoredType::i64, "annotation", -1, "last"},
    {"yes_no", FeatureKind::ragged, StoredType::u8, "annotation", {}, {}}};
const std::vector<Example> kGold{{{"example_id", INT64_MIN},
                                  {"long_start", std::vector<std::int64_t>{3, -1, 1LL << 40}},
                                  {"yes_no", std::vector<std::int64_t>{0, 1, 2}}},
                                 {{"example_id", std::int64_t{7}},
                                  {"long_start", std::vector<std::int64_t>{}},
                                  {"yes_no", std::vector<std::int64_t>{}}}};

Schema schema_with_gold() {
  Schema schema = sample_schema();
  schema.gold = kGoldFeatures;
  return schema;
}

void write_with_gold(const std::filesystem::path& path, std::int64_t gold_rows) {
  DatasetWriter writer(path, schema_with_gold(), sample_info());
  writer.append(worked_example());
  for (std::int64_t i = 0; i < gold_rows; ++i) writer.append_gold(kGold[static_cast<std::size_t>(i) % 2]);
  writer.finish({{"train.json", 12345, std::string(64, 'b')}}, 2, 0, 0);
}

}  // namespace

TEST_CASE("a table of gold stands beside the examples, a row per accepted record", "[data][store]") {
  const TemporaryFolder folder;
  CHECK_THAT(error_of([&] { write_with_gold(folder / "bad.h5", 1); }),
             Catch::Contains("/gold: expected a row for each of 2 accepted records, got 1"));
  write_with_gold(folder / "a.h5", 2);
  const DatasetReader reader({folder / "a.h5", folder / "a.h5"}, schema_with_gold());
  CHECK(reader.size() == 2);
  REQUIRE(reader.gold_size() == 4);
  for (std::int64_t i = 0; i < 4; ++i) CHECK(reader.read_gold(i) == kGold[static_cast<std::size_t>(i) % 2]);
  CHECK_THAT(error_of([&] { reader.read_gold(4); }), Catch::Contains("expected a gold index below 4, got 4"));
  // A schema without gold features ignores /gold; a schema with gold features requires it.
  CHECK(DatasetReader({folder / "a.h5"}, sample_schema()).gold_size() == 0);
  write_examples(folder / "none.h5", {worked_example()});
  CHECK_THAT(error_of([&] { DatasetReader({folder / "none.h5"}, schema_with_gold()); }), Catch::Contains("gold"));
  DatasetWriter plain(folder / "plain.h5", sample_schema(), sample_info());
  CHECK_THAT(error_of([&] { plain.append_gold(kGold[0]); }), Catch::Contains("no gold features"));

  const auto python = python_with("h5py, numpy");
  if (!python) return skip("no python3 with h5py");
  Json described = description({worked_example()}, {});
  described["attributes"]["n_input_records"] = 2;
  described["gold_features"] = description(kGoldFeatures);
  described["gold"] = {description(kGold[0]), description(kGold[1])};
  test::write_file(folder / "description.json", json_line(described));
  CHECK(run_script(*python, "check", folder) == 0);
}

TEST_CASE("a file by a trusted writer is read as it was meant", "[data][store]") {
  const auto python = python_with("h5py, numpy");
  if (!python) return skip("no python3 with h5py");
  const TemporaryFolder folder;
  const auto examples = mixed_examples();
  const auto faults = mixed_faults();
  test::write_file(folder / "description.json", json_line(description(examples, faults)));
  REQUIRE(run_script(*python, "write", folder) == 0);
  const DatasetReader reader({folder / "a.h5"}, sample_schema());
  REQUIRE(reader.size() == static_cast<std::int64_t>(examples.size()));
  for (std::int64_t i = 0; i < reader.size(); ++i) REQUIRE(reader.read(i) == examples[static_cast<std::size_t>(i)]);
  REQUIRE(reader.faults().size() == faults.size());
  CHECK(reader.faults()[4].message == faults[4].message);
  CHECK(reader.faults()[4].byte_offset == faults[4].byte_offset);
}
