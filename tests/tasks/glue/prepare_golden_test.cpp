// Rows, labels and features of every data set, and of invented files, against those of the published preparation.
#include <map>
#include <sstream>

#include "etc_core/base/files.h"
#include "tasks/glue/prepare.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/golden_tables.h"
#include "tests/tasks/padded.h"
#include "tests/tasks/raw_records.h"
#include "tests/tasks/shared_tokenizer.h"

using namespace etc;
using namespace etc::glue;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;

DataSet set_of(const std::string& task) {
  for (const DataSetInfo& info : data_sets()) {
    if (task == info.folder) return info.set;
  }
  FAIL("unknown data set " << task);
  return DataSet::cola;
}

// One file of rows: its bytes, and how it is read.
struct Source {
  std::string bytes;
  std::string set_type;
  PrepareConfig config;
};

Source source_of(const test::GoldenFile& file, const std::string& group) {
  Source source;
  source.config.data_set = set_of(file.string_attribute(group, "task"));
  const std::string layout = file.string_attribute(group, "layout");
  REQUIRE((layout == "csv" || layout == "tsv"));
  source.config.layout = layout == "csv" ? Layout::csv : Layout::tsv;
  source.set_type = file.string_attribute(group, "set_type");
  REQUIRE((source.set_type == "train" || source.set_type == "test" || source.set_type.starts_with("dev")));
  // Test files have no usable labels, except in the raw release of STS-B.
  source.config.labels_required = source.set_type != "test" || source.config.layout == Layout::csv;
  if (file.has_attribute(group, "file")) {
    source.bytes = read_file(file.path().parent_path() / "records" / file.string_attribute(group, "file"));
  } else {
    const auto bytes = file.read<std::uint8_t>(group + "/file_bytes").values;
    source.bytes.assign(bytes.begin(), bytes.end());
  }
  return source;
}

struct Prepared {
  std::vector<data::RecordSlice> records;
  std::vector<prepare::Converted> rows;
  std::string fault;  // code of the fault that ended the reading; "": none
};

Prepared prepared(const Source& source, const fs::path& vocab, std::int64_t seq_len) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "rows", source.bytes);
  PrepareConfig config = source.config;
  config.seq_len = seq_len;
  const GluePreparation preparation(config, test::shared_tokenizer(vocab));
  data::ByteStream stream(folder / "rows");
  Prepared result;
  try {
    const auto reader = preparation.open_records(stream);
    for (data::RecordSlice record; reader->next(record);) {
      result.records.push_back(record);
      result.rows.push_back(preparation.convert_record(record));
    }
  } catch (const data::InputFault& fault) {
    result.fault = fault.code();
  }
  return result;
}

template <typename Value>
const Value& of(const data::Example& example, const char* name) {
  return std::get<Value>(example.at(name));
}

// What the reference reads of every row, whatever the setting.
class GoldenRows {
 public:
  GoldenRows(const test::GoldenFile& file, const std::string& group)
      : a_(test::read_byte_texts(file, group + "/text_a")),
        b_(test::read_byte_texts(file, group + "/text_b")),
        label_texts_(file.read_strings(group + "/label_text")),
        guids_(file.read_strings(group + "/guid")),
        rows_(file.read<std::int64_t>(group + "/row").values),
        labels_(file.read<std::int64_t>(group + "/label_id").values),
        has_b_(file.read<std::int64_t>(group + "/has_text_b").values),
        values_(file.read<double>(group + "/label_value").values) {
    for (const std::size_t size :
         {b_.size(), label_texts_.size(), guids_.size(), rows_.size(), labels_.size(), has_b_.size(), values_.size()}) {
      REQUIRE(size == a_.size());
    }
  }

  std::size_t size() const { return a_.size(); }
  const std::string& text_a(std::size_t i) const { return a_[i]; }

  void require_equal(std::size_t i, const Source& source, const data::RecordSlice& record, const Row& row) const {
    REQUIRE(i < size());
    CHECK(row.text_a == a_[i]);
    CHECK(row.text_b == b_[i]);
    const DataSetInfo& info = info_of(source.config.data_set);
    CHECK(has_b_[i] == (info.text_b[0] != '\0' ? 1 : 0));
    CHECK(source.set_type + "-" + row.id == guids_[i]);
    const bool has_header = !data::header_of(record.text).empty();
    CHECK(record.index + (has_header ? 1 : 0) == rows_[i]);
    if (info.regression()) {
      CHECK(labels_[i] == -1);
      REQUIRE(row.score);
      CHECK(*row.score == values_[i]);
      CHECK(std::stod(label_texts_[i]) == values_[i]);
      return;
    }
    // The reference gives rows of test files the first label.
    const std::int64_t label = source.config.labels_required ? row.label : 0;
    CHECK(row.label == (source.config.labels_required ? label : -1));
    CHECK(labels_[i] == label);
    CHECK(values_[i] == static_cast<double>(label));
    CHECK(label_texts_[i] == info.labels.at(static_cast<std::size_t>(label)));
  }

 private:
  std::vector<std::string> a_, b_, label_texts_, guids_;
  Numbers rows_, labels_, has_b_;
  std::vector<double> values_;
};

// Attributes of a group that tell how its rows were read.
void compare_attributes(const test::GoldenFile& file, const std::string& group, const Source& source,
                        const Prepared& ours) {
  const DataSetInfo& info = info_of(source.config.data_set);
  const std::string labels = file.string_attribute(group, "labels");
  if (info.regression()) {
    CHECK(labels == "regression");
  } else {
    CHECK(parse_json(labels, "labels") == Json(info.labels));
  }
  std::int64_t left_out = 0;
  for (const prepare::Converted& row : ours.rows) left_out += row.faults.dropped() ? 1 : 0;
  CHECK(left_out == (file.has_attribute(group, "rows_left_out") ? file.int_attribute(group, "rows_left_out") : 0));
  if (!file.has_attribute(group, "header")) return;
  REQUIRE(!ours.records.empty());
  CHECK(file.int_attribute(group, "header") == (data::header_of(ours.records[0].text).empty() ? 0 : 1));
}

// Compares what the rows say, without tokenising them.
void compare_rows(const test::GoldenFile& file, const std::string& group, const Source& source, const fs::path& vocab) {
  const GoldenRows golden(file, group);
  const Prepared ours = prepared(source, vocab, 128);
  CHECK(ours.fault.empty());
  compare_attributes(file, group, source, ours);
  std::size_t next = 0;
  for (const data::RecordSlice& record : ours.records) {
    prepare::FaultList faults;
    const Row row = read_row(record, source.config.row_form(), faults);
    if (faults.dropped()) continue;
    CAPTURE(next, test::fault_words(faults));
    golden.require_equal(next++, source, record, row);
  }
  CHECK(next == golden.size());
}

std::string without_quotes(std::string text) {
  std::erase(text, '"');
  return text;
}

// Rows taken from a file of the real data are found there. Rows whose other columns are invented come from elsewhere. A
// file may tell which rows these are without naming the origin of any.
void compare_sources(const test::GoldenFile& file, const std::string& group, const fs::path& data) {
  if (!file.has(group + "/constructed")) return;
  const auto constructed = file.read_mask(group + "/constructed");
  if (!file.has(group + "/source")) return;
  const GoldenRows rows(file, group);
  const auto sources = file.read_strings(group + "/source");
  const std::string format = fs::path(file.string_attribute(group, "file")).extension();
  REQUIRE(sources.size() == rows.size());
  REQUIRE(constructed.size() == rows.size());
  std::map<std::string, std::vector<std::string>> lines;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    CAPTURE(sources[i]);
    const std::size_t colon = sources[i].rfind(':');
    const bool place = colon != std::string::npos && sources[i].find(' ') == std::string::npos;
    const std::string name = sources[i].substr(0, place ? colon : 0);
    CHECK(constructed[i] == (place && fs::path(name).extension() == format ? 0 : 1));
    if (!place) continue;
    if (!lines.contains(name)) {
      std::istringstream all(read_file(data / name));
      for (std::string line; std::getline(all, line);) lines[name].push_back(without_quotes(line));
    }
    const std::string& line = lines.at(name).at(static_cast<std::size_t>(std::stoll(sources[i].substr(colon + 1))));
    CHECK_THAT(line, Catch::Contains(without_quotes(rows.text_a(i))));
  }
}

std::size_t compare_features(const test::GoldenFile& file, const std::string& group, const Source& source,
                             const fs::path& vocab, const std::string& setting) {
  const std::string path = group + "/" + setting;
  const auto ids = file.read<std::int64_t>(path + "/input_ids"),
             segments = file.read<std::int64_t>(path + "/segment_ids");
  const auto lengths = file.read<std::int64_t>(path + "/length").values;
  const std::int64_t most = file.int_attribute(path, "max_seq_length");
  REQUIRE(setting == "L" + std::to_string(most));
  for (const auto* array : {&ids, &segments}) {
    REQUIRE(array->shape == std::vector<std::int64_t>{std::ssize(lengths), most});
  }
  const Prepared ours = prepared(source, vocab, most);
  std::size_t next = 0;
  for (std::size_t i = 0; i < ours.rows.size(); ++i) {
    const prepare::Converted& converted = ours.rows[i];
    CAPTURE(setting, next, test::fault_words(converted.faults));
    if (converted.faults.dropped()) continue;
    REQUIRE(converted.examples.size() == 1);
    REQUIRE(next < lengths.size());
    const data::Example& example = converted.examples[0];
    const auto golden_row = [&](const test::GoldenArray<std::int64_t>& array) {
      const auto begin = array.values.begin() + static_cast<std::ptrdiff_t>(next) * most;
      return Numbers(begin, begin + most);
    };
    REQUIRE(lengths[next] == std::ssize(of<Numbers>(example, "token_ids")));
    test::require_padded(golden_row(ids), of<Numbers>(example, "token_ids"), std::int64_t{0});
    test::require_padded(golden_row(segments), of<Numbers>(example, "segment_ids"), std::int64_t{0});
    // The example has the row's id, place and label, which are compared with the golden ones elsewhere.
    prepare::FaultList faults;
    const Row row = read_row(ours.records[i], source.config.row_form(), faults);
    CHECK(of<std::string>(example, "id") == row.id);
    CHECK(of<std::int64_t>(example, "record_index") == ours.records[i].index);
    if (info_of(source.config.data_set).regression()) {
      CHECK(of<float>(example, "score") == static_cast<float>(row.score.value()));
      CHECK(of<std::int64_t>(example, "scored") == 1);
    } else {
      CHECK(of<std::int64_t>(example, "label") == row.label);
    }
    ++next;
  }
  CHECK(next == lengths.size());
  return next;
}

// The codes of the faults that stand for an exception of the reference.
std::vector<std::string> codes_of(const std::string& exception) {
  const std::map<std::string, std::vector<std::string>> codes = {{"IndexError", {"row_short"}},
                                                                 {"KeyError", {"label_unknown"}},
                                                                 {"ValueError", {"score_range", "row_short"}},
                                                                 {"UnicodeDecodeError", {"utf8_invalid"}},
                                                                 {"Error", {"csv_quote"}}};
  const auto found = codes.find(exception);
  if (found == codes.end()) FAIL("unknown exception " << exception);
  return found->second;
}

// The first row on which the reference stops is refused with its line number, for the same reason; or the whole file is
// refused for its header.
void require_refused(const Prepared& ours, const std::string& exception) {
  const std::vector<std::string> codes = codes_of(exception);
  if (!ours.fault.empty()) {
    CHECK(ours.fault == "header_unexpected");
    return;
  }
  const auto refused = std::find_if(ours.rows.begin(), ours.rows.end(), [](const prepare::Converted& row) {
    return row.faults.rejected() || row.faults.dropped();
  });
  REQUIRE(refused != ours.rows.end());
  const data::Fault& fault = refused->faults.rows().at(0);
  CAPTURE(fault.code);
  CHECK(std::find(codes.begin(), codes.end(), fault.code) != codes.end());
  CHECK_THAT(fault.message, Catch::Contains("line "));
}

// "L128", …: the groups that are no ragged texts.
std::vector<std::string> settings_of(const test::GoldenFile& file, const std::string& group) {
  std::vector<std::string> names = file.groups(group);
  std::erase_if(names, [](const std::string& name) { return name == "text_a" || name == "text_b"; });
  return names;
}

}  // namespace

TEST_CASE("GLUE features equal the published preparation's, every row of every data set", "[glue][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("glue_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden GLUE features");
  for (const fs::path& path : files) {
    const test::GoldenFile file(path);
    const fs::path vocab = *data / "vocab" / file.string_attribute("", "vocab");
    test::require_vocabulary(file, "", *test::shared_tokenizer(vocab));
    std::size_t rows = 0;
    for (const std::string& task : file.groups()) {
      for (const std::string& name : file.groups(task)) {
        const std::string group = task + "/" + name;
        CAPTURE(group);
        const Source source = source_of(file, group);
        const std::string outcome =
            file.has_attribute(group, "outcome") ? file.string_attribute(group, "outcome") : "ok";
        if (outcome != "ok") {
          require_refused(prepared(source, vocab, 128), outcome);
          continue;
        }
        compare_rows(file, group, source, vocab);
        compare_sources(file, group, *data);
        const auto settings = settings_of(file, group);
        CHECK(!settings.empty());
        for (const std::string& setting : settings) rows += compare_features(file, group, source, vocab, setting);
      }
    }
    file.require_all_read(
        "", {{"@content", "a description"}, {"@unicode_version", "a description"}, {"*@note", "a description"}});
    CHECK(rows > 0);
    std::printf("%s: %zu rows equal\n", path.filename().c_str(), rows);
  }
}

TEST_CASE("a golden file may tell which rows are invented without naming the origin of the others", "[glue]") {
  const test::TemporaryFolder folder;
  const auto compare = [&](std::int64_t second) {
    test::H5Edit(folder / "rows.h5").put_integers("/CoLA/dev/constructed", {0, second});
    const test::GoldenFile file(folder / "rows.h5");
    compare_sources(file, "CoLA/dev", {});
    file.require_all_read();
  };
  CHECK_NOTHROW(compare(1));
  CHECK_THROWS_WITH(compare(2), Catch::Contains("constructed"));
}

TEST_CASE("a file that the published preparation does not read may fail on any of its rows or on its header",
          "[glue]") {
  Prepared ours;
  ours.fault = "header_unexpected";
  require_refused(ours, "KeyError");
  ours.fault.clear();
  ours.rows.resize(3);
  for (const std::size_t i : {1, 2}) ours.rows[i].faults.reject("row", "row_short", "line 3: too few columns");
  require_refused(ours, "IndexError");
}
