#include <cstdint>
#include <filesystem>

#include "data/dataset_info.h"
#include "etc_core/base/files.h"
#include "tests/data/store/samples.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/h5_edit.h"
#include "tests/support/mutate.h"

using namespace etc;
using namespace etc::data;
using namespace etc::test;

namespace {

using Ids = std::vector<std::int64_t>;

// The same layout in the oldest file format, as another program may write it. Its metadata have no checksums, so damage
// is detected later than in our own files.
void write_old_format(const std::filesystem::path& path, const std::vector<Example>& rows) {
  H5Edit file(path);
  const H5Edit::Storage small_chunks{64, true, false};
  for (const FeatureSpec& spec : sample_schema().features) {
    Ids values, offsets{0}, item_offsets{0};
    std::vector<double> reals;
    const auto add_text = [&](const std::string& text) {
      for (const char c : text) values.push_back(static_cast<unsigned char>(c));
    };
    for (const Example& row : rows) {
      const FeatureValue& value = row.at(spec.name);
      if (const auto* number = std::get_if<std::int64_t>(&value)) values.push_back(*number);
      if (const auto* real = std::get_if<float>(&value)) reals.push_back(*real);
      if (const auto* list = std::get_if<Ids>(&value)) values.insert(values.end(), list->begin(), list->end());
      if (const auto* list = std::get_if<std::vector<float>>(&value))
        reals.insert(reals.end(), list->begin(), list->end());
      if (const auto* text = std::get_if<std::string>(&value)) add_text(*text);
      if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
        for (const std::string& text : *texts) {
          add_text(text);
          item_offsets.push_back(static_cast<std::int64_t>(values.size()));
        }
      }
      const std::size_t strings = item_offsets.size() - 1;
      offsets.push_back(static_cast<std::int64_t>(
          spec.kind == FeatureKind::strings ? strings : std::max(values.size(), reals.size())));
    }
    const std::string group = "/examples/" + spec.name;
    if (spec.type == StoredType::f32) {
      file.put_floats(group + "/values", reals, 4);
    } else if (spec.type == StoredType::u8) {
      file.put_integers(group + "/values", values, 1, false, {}, small_chunks);
    } else {
      file.put_integers(group + "/values", values, 8, true, {}, small_chunks);
    }
    if (spec.kind != FeatureKind::scalar) file.put_integers(group + "/offsets", offsets, 8, true, {}, small_chunks);
    if (spec.kind == FeatureKind::strings) file.put_integers(group + "/item_offsets", item_offsets);
  }
  for (const char* text : {"file", "id", "field", "code", "severity", "message"}) {
    file.put_integers(std::string("/rejects/") + text + "/values", {}, 1, false);
    file.put_integers(std::string("/rejects/") + text + "/offsets", {0});
  }
  for (const char* number : {"record_index", "byte_offset"})
    file.put_integers(std::string("/rejects/") + number + "/values", {});
  for (const char* name :
       {"task", "split", "vocab_sha256", "preprocess_config", "source_files", "unicode_version", "content_sha256"}) {
    const std::string text(name);
    file.put_attribute("/", name,
                       text == "task"                ? "wikihop"
                       : text == "preprocess_config" ? "{}"
                       : text == "source_files"      ? "[]"
                                                     : "x");
  }
  for (const char* name : {"format_version", "n_input_records", "n_examples", "n_rejected", "n_dropped", "labelled",
                           "max_long_len", "max_global_len"}) {
    const std::string count(name);
    file.put_attribute("/", name,
                       count == "format_version" ? 1
                       : count == "n_examples"   ? static_cast<std::int64_t>(rows.size())
                                                 : 0);
  }
}

// Opens mutants of a file and reads all of those that open. Each gives an Error or a valid result.
void read_mutants(const std::string& bytes, std::uint64_t first_seed, std::uint64_t count) {
  const TemporaryFolder folder;
  std::uint64_t opened = 0, refused = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    CAPTURE(seed);
    std::string mutant = mutate(bytes, seed);
    if (seed % 2 == 1) mutant.resize(bytes.size());  // otherwise the wrong length would hide other damage
    test::write_file(folder / "bad.h5", mutant);
    try {
      const DatasetReader reader({folder / "bad.h5"}, sample_schema());
      for (std::int64_t i = 0; i < reader.size(); ++i) reader.read(i);
      reader.faults();
      ++opened;
    } catch (const Error&) {
      ++refused;
    }
  }
  CAPTURE(opened, refused);
  CHECK(opened + refused == count);
  CHECK(refused > count / 4);  // check that the mutator damages files
}

std::string new_format_bytes() {
  const TemporaryFolder folder;
  write_samples(folder / "good.h5", 12);
  return read_file(folder / "good.h5");
}

std::string incomplete_bytes() {
  const TemporaryFolder folder;
  DatasetInfo info = sample_info();
  info.missing = {{"a.json", "byte 7, line 1, column 8: the file ends inside a record"}};
  write_examples(folder / "good.h5", {worked_example(), sample_example(1)}, {sample_fault(1)}, info);
  return read_file(folder / "good.h5");
}

std::string old_format_bytes() {
  const TemporaryFolder folder;
  std::vector<Example> rows;
  for (std::int64_t i = 0; i < 12; ++i) rows.push_back(sample_example(i));
  write_old_format(folder / "good.h5", rows);
  const DatasetReader reader({folder / "good.h5"}, sample_schema());
  for (std::int64_t i = 0; i < 12; ++i) REQUIRE(reader.read(i) == rows[static_cast<std::size_t>(i)]);
  return read_file(folder / "good.h5");
}

}  // namespace

TEST_CASE("a rejected record's severity is one of four words", "[data][store]") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.h5";
  write_examples(path, {worked_example()}, {sample_fault(0)});
  REQUIRE(DatasetReader({path}, sample_schema()).faults().at(0).severity == Severity::reject);
  { H5Edit(path).put_integers("/rejects/severity/values", {'r', 'e', 'j', 'e', 'c', 'k'}, 1, false); }
  const DatasetReader reader({path}, sample_schema());
  CHECK(error_of([&] { reader.faults(); }) ==
        "h5: " + path.string() +
            ":/rejects/severity: expected fatal, reject, drop or warn, got \"rejeck\" (the file is damaged)");
}

TEST_CASE("damaged data sets give errors or valid results", "[data][store]") {
  read_mutants(new_format_bytes(), 0, 100);
  read_mutants(old_format_bytes(), 0, 100);
  read_mutants(incomplete_bytes(), 0, 50);
}

TEST_CASE("many damaged data sets give errors or valid results", "[data][store][slow]") {
  read_mutants(new_format_bytes(), 1000, 2500);
  read_mutants(old_format_bytes(), 1000, 2500);
  read_mutants(incomplete_bytes(), 1000, 1250);
}
