#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "data/dataset_info.h"
#include "etc_core/base/files.h"
#include "tests/data/store/samples.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"

using namespace etc;
using namespace etc::data;
using namespace etc::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

using Ids = std::vector<std::int64_t>;

Ids stored(const GoldenFile& file, const std::string& path) {
  return file.read<std::int64_t>(path).values;
}

// Returns a bool, so that a failed CHECK does not print the files.
bool same_bytes(const fs::path& a, const fs::path& b) {
  return read_file(a) == read_file(b);
}

}  // namespace

TEST_CASE("a list of strings is stored as bytes with borders of strings and of examples", "[data][store]") {
  const TemporaryFolder folder;
  Schema schema{"openkp", {{"key_phrases", FeatureKind::strings, StoredType::u8, "", {}, {}}}};
  DatasetInfo info = sample_info();
  info.task = "openkp";
  DatasetWriter writer(folder / "a.h5", schema, info);
  writer.append({{"key_phrases", std::vector<std::string>{"ab", "é"}}});
  writer.append({{"key_phrases", std::vector<std::string>{}}});
  writer.finish({}, 2, 0, 0);

  // task-wikihop 8.1: "Two examples with the lists (ab, é) and ()".
  const GoldenFile file(folder / "a.h5");
  CHECK(stored(file, "examples/key_phrases/values") == Ids{0x61, 0x62, 0xC3, 0xA9});
  CHECK(stored(file, "examples/key_phrases/item_offsets") == Ids{0, 2, 4});
  CHECK(stored(file, "examples/key_phrases/offsets") == Ids{0, 2, 2});
}

TEST_CASE("the worked example has the borders the specification gives", "[data][store]") {
  const TemporaryFolder folder;
  write_examples(folder / "a.h5", {worked_example()});
  // task-wikihop 8.4, "Check on 2.7".
  const GoldenFile file(folder / "a.h5");
  CHECK(stored(file, "examples/long_token_ids/offsets") == Ids{0, 14});
  CHECK(stored(file, "examples/global_token_ids/offsets") == Ids{0, 9});
  CHECK(stored(file, "examples/candidates/offsets") == Ids{0, 2});
  CHECK(stored(file, "examples/candidates/item_offsets") == Ids{0, 6, 14});
  CHECK(stored(file, "examples/query/offsets") == Ids{0, 12});
  CHECK(file.string_attribute("examples/long_token_ids", "align") == "long");
  CHECK(file.int_attribute("examples/long_sentence_ids", "pad_value") == -1);
  CHECK(file.int_attribute("examples/label_id", "missing_value") == -1);
  CHECK_FALSE(file.has_attribute("examples/label_id", "align"));
  CHECK(file.int_attribute("", "max_long_len") == 14);
  CHECK(file.int_attribute("", "max_global_len") == 9);
  CHECK(file.string_attribute("", "preprocess_config") ==
        R"({"do_lower_case":true,"long_seq_len":4096,"parity":"repaired"})");
}

TEST_CASE("equal calls write byte-equal files, however the chunks fill", "[data][store]") {
  const TemporaryFolder folder;
  // 600 examples of up to 400 long tokens fill more than one chunk.
  write_samples(folder / "a.h5", 600, 0, 400);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // a stored time would differ
  write_samples(folder / "b.h5", 600, 0, 400);

  CHECK(same_bytes(folder / "a.h5", folder / "b.h5"));
  CHECK(fs::file_size(folder / "a.h5") > 100'000);
  write_samples(folder / "c.h5", 599, 0, 400);
  CHECK_FALSE(same_bytes(folder / "a.h5", folder / "c.h5"));
}

TEST_CASE("attributes above 64 KB are stored whole", "[data][store]") {
  const TemporaryFolder folder;
  DatasetInfo info = sample_info();
  info.preprocess_config["note"] = std::string(300'000, 'x') + "é";
  std::vector<SourceFile> sources;
  for (int i = 0; i < 2000; ++i) sources.push_back({"part-" + std::to_string(i) + ".json", i, std::string(64, 'c')});
  for (const char* name : {"a.h5", "b.h5"}) {
    DatasetWriter writer(folder / name, sample_schema(), info);
    writer.append(worked_example());
    writer.finish(sources, 1, 0, 0);
  }
  CHECK(same_bytes(folder / "a.h5", folder / "b.h5"));
  const DatasetInfo read = read_dataset_info(folder / "a.h5");
  CHECK(read.preprocess_config == info.preprocess_config);
  REQUIRE(read.source_files.size() == 2000);
  CHECK(read.source_files[1999].name == "part-1999.json");
}

TEST_CASE("the writer refuses what does not fit the schema and stays usable", "[data][store]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.h5";
  DatasetWriter writer(path, sample_schema(), sample_info());
  writer.append(sample_example(0));

  const auto refused = [&](const char* feature, std::optional<FeatureValue> value) {
    Example example = worked_example();
    if (value) {
      example[feature] = *value;
    } else {
      example.erase(feature);
    }
    return error_of([&] { writer.append(example); });
  };
  const std::string where = "h5: " + path.string() + ":/examples";
  const std::string row = ": row 1 (WH_train_0): ";
  CHECK(refused("label_id", std::nullopt) == where + "/label_id" + row + "the feature is missing");
  CHECK(refused("labels", std::int64_t{1}) == where + ": row 1: unknown feature labels");
  CHECK(refused("label_id", std::string("x")) == where + "/label_id" + row + "expected an integer, got a string");
  CHECK(refused("label_id", 1.5f) == where + "/label_id" + row + "expected an integer, got a float");
  CHECK(refused("x_coords", Ids{1}) == where + "/x_coords" + row + "expected a list of floats, got a list of integers");
  CHECK(refused("candidates", std::string("x")) ==
        where + "/candidates" + row + "expected a list of strings, got a string");
  CHECK(refused("label_id", std::int64_t{1} << 31) ==
        where + "/label_id" + row + "expected values that fit into int32, got 2147483648");
  CHECK(refused("flags", std::int64_t{-1}) == where + "/flags" + row + "expected values that fit into uint32, got -1");
  CHECK(refused("long_sentence_ids", Ids{0, 1, 1, 2, 3, 5, 5, 5, 6, 6, 8, 8, 8, 32768}) ==
        where + "/long_sentence_ids" + row + "expected values that fit into int16, got 32768");
  CHECK(refused("long_sentence_ids", Ids{0, 1}) ==
        where + "/long_sentence_ids" + row + "expected 14 elements as in long_token_ids (align class long), got 2");
  CHECK(refused("query", std::string("\xC3")) == where + "/query" + row + "expected well-formed UTF-8");
  CHECK(refused("candidates", std::vector<std::string>{"a", "\xED\xA0\x80"}) ==
        where + "/candidates" + row + "expected well-formed UTF-8");

  Fault fault = sample_fault(0);
  fault.severity = Severity::warn;
  CHECK_THAT(error_of([&] { writer.add_fault(fault); }),
             Contains("/rejects/severity: expected reject or drop, got warn"));
  CHECK_THAT(error_of([&] { writer.finish({}, 1, 1, 1); }), Contains("expected n_input_records of at least"));

  writer.append(worked_example());
  writer.finish({}, 2, 0, 0);
  CHECK_THAT(error_of([&] { writer.append(worked_example()); }), Contains("the file is finished"));
  CHECK_THAT(error_of([&] { writer.add_fault(sample_fault(0)); }), Contains("the file is finished"));
  CHECK_THAT(error_of([&] { writer.finish({}, 2, 0, 0); }), Contains("the file is finished"));
  const DatasetReader reader({path}, sample_schema());
  CHECK(reader.size() == 2);
  CHECK(reader.read(0) == sample_example(0));
  CHECK(reader.read(1) == worked_example());
}

TEST_CASE("the writer refuses a schema the layout cannot hold", "[data][store]") {
  const TemporaryFolder folder;
  const auto refused = [&](std::vector<FeatureSpec> features) {
    return error_of([&] { DatasetWriter(folder / "a.h5", Schema{"wikihop", std::move(features)}, sample_info()); });
  };
  CHECK_THAT(refused({{"a/b", FeatureKind::scalar, StoredType::i32, "", {}, {}}}),
             Contains("/examples: expected a feature name without '/', got \"a/b\""));
  CHECK_THAT(refused({{"a", FeatureKind::scalar, StoredType::i32, "", {}, {}},
                      {"a", FeatureKind::scalar, StoredType::i32, "", {}, {}}}),
             Contains("feature a is declared twice"));
  CHECK_THAT(refused({{"a", FeatureKind::string, StoredType::i32, "", {}, {}}}),
             Contains("feature a: expected strings to be stored as u8"));
  CHECK_THAT(refused({{"a", FeatureKind::scalar, StoredType::i32, "long", {}, {}}}),
             Contains("feature a: expected a list, since it belongs to the align class long"));
  DatasetInfo info = sample_info();
  info.task = "nq";
  CHECK_THAT(error_of([&] { DatasetWriter(folder / "a.h5", sample_schema(), info); }),
             Contains("task: expected wikihop as in the schema, got nq"));
  CHECK(fs::is_empty(folder.path()));
  CHECK_THAT(error_of([&] { sample_schema().feature("labels"); }), Contains("task wikihop has no feature labels"));
}

TEST_CASE("nothing stays of a file that is not finished, and an old one stays whole", "[data][store]") {
  const TemporaryFolder folder;
  {
    DatasetWriter writer(folder / "a.h5", sample_schema(), sample_info());
    writer.append(worked_example());
    CHECK_FALSE(fs::exists(folder / "a.h5"));
  }
  CHECK(fs::is_empty(folder.path()));
  test::write_file(folder / "a.h5", "old");
  { DatasetWriter writer(folder / "a.h5", sample_schema(), sample_info()); }
  CHECK(read_file(folder / "a.h5") == "old");
}

TEST_CASE("a folder that cannot be written to is an error naming the file", "[data][store]") {
  const TemporaryFolder folder;
  test::write_file(folder / "file", "x");
  const std::vector<std::pair<fs::path, std::string>> cases = {{folder / "file" / "a.h5", ": cannot look up: "},
                                                               {"/proc/a.h5", ": cannot create: "}};
  for (const auto& [path, why] : cases) {
    const std::string message = error_of([&] { DatasetWriter(path, sample_schema(), sample_info()); });
    CHECK_THAT(message, Contains(path.string() + why));
  }
  CHECK(error_of([&] { DatasetWriter(folder / "missing" / "a.h5", sample_schema(), sample_info()); }) == "no error");
}

TEST_CASE("a full disk is an error naming the file and leaves nothing behind", "[data][store]") {
  const TemporaryFolder folder;
  std::vector<Example> rows;
  for (std::int64_t i = 0; i < 600; ++i) rows.push_back(sample_example(i, 400));
  write_examples(folder / "whole.h5", rows);
  const auto size = static_cast<rlim_t>(fs::file_size(folder / "whole.h5"));
  // Disk full at the first write, in the middle of the values, and when the last metadata are flushed.
  for (const rlim_t limit : {rlim_t{10}, rlim_t{2000}, size / 3, size / 2, size - 3000, size - 1}) {
    std::string message;
    {
      const FileSizeLimit full(limit);
      message = error_of([&] { write_examples(folder / "a.h5", rows); });
    }
    CAPTURE(limit, size);
    CHECK_THAT(message, Contains((folder / "a.h5").string() + ": cannot write: File too large"));
    CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
  }
  // The library still works.
  write_examples(folder / "a.h5", rows);
  CHECK(same_bytes(folder / "a.h5", folder / "whole.h5"));
}
