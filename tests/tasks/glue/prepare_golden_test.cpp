// Rows, labels and features of every data set, and of invented files, against those of the published preparation.
#include <map>

#include "etc_core/base/files.h"
#include "tasks/glue/prepare.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"
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
  PrepareConfig config;
};

Source source_of(const test::GoldenFile& file, const std::string& group) {
  Source source;
  source.config.data_set = set_of(file.string_attribute(group, "task"));
  source.config.layout = file.string_attribute(group, "layout") == "csv" ? Layout::csv : Layout::tsv;
  // Test files have no usable labels, except in the raw release of STS-B.
  source.config.labels_required =
      file.string_attribute(group, "set_type") != "test" || source.config.layout == Layout::csv;
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
};

Prepared prepared(const Source& source, const fs::path& vocab, std::int64_t seq_len) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "rows", source.bytes);
  PrepareConfig config = source.config;
  config.seq_len = seq_len;
  const GluePreparation preparation(config, test::shared_tokenizer(vocab));
  data::ByteStream stream(folder / "rows");
  const auto reader = preparation.open_records(stream);
  Prepared result;
  for (data::RecordSlice record; reader->next(record);) {
    result.records.push_back(record);
    result.rows.push_back(preparation.convert_record(record));
  }
  return result;
}

template <typename Value>
const Value& of(const data::Example& example, const char* name) {
  return std::get<Value>(example.at(name));
}

std::vector<std::string> texts(const test::GoldenFile& file, const std::string& name) {
  std::vector<std::string> result;
  for (const auto& bytes : file.read_ragged<std::uint8_t>(name)) result.emplace_back(bytes.begin(), bytes.end());
  return result;
}

// Compares the texts of the rows, without tokenising them.
void compare_rows(const test::GoldenFile& file, const std::string& group, const Source& source, const Prepared& ours) {
  const auto a = texts(file, group + "/text_a"), b = texts(file, group + "/text_b");
  std::size_t next = 0;
  for (const data::RecordSlice& record : ours.records) {
    prepare::FaultList faults;
    const Row row = read_row(record, source.config.row_form(), faults);
    if (faults.dropped()) continue;
    CAPTURE(next, test::fault_words(faults));
    REQUIRE(next < a.size());
    CHECK(row.text_a == a[next]);
    CHECK(row.text_b == b[next]);
    ++next;
  }
  CHECK(next == a.size());
}

std::size_t compare_features(const test::GoldenFile& file, const std::string& group, const Source& source,
                             const fs::path& vocab, const std::string& setting) {
  const std::string path = group + "/" + setting;
  const auto ids = file.read<std::int64_t>(path + "/input_ids"),
             segments = file.read<std::int64_t>(path + "/segment_ids");
  const auto lengths = file.read<std::int64_t>(path + "/length").values;
  const auto labels = file.read<std::int64_t>(group + "/label_id").values;
  const auto values = file.read<double>(group + "/label_value").values;
  const auto guids = file.read_strings(group + "/guid");
  const auto rows = file.read<std::int64_t>(group + "/row").values;
  const std::string prefix = file.string_attribute(group, "set_type") + "-";
  const std::int64_t most = std::stoll(setting.substr(1));
  const Prepared ours = prepared(source, vocab, most);
  const bool regression = info_of(source.config.data_set).regression();
  std::size_t next = 0;
  for (const prepare::Converted& converted : ours.rows) {
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
    CHECK(prefix + of<std::string>(example, "id") == guids[next]);
    const std::int64_t header = data::header_of(ours.records[next].text).empty() ? 0 : 1;
    if (ours.rows.size() == lengths.size()) CHECK(of<std::int64_t>(example, "record_index") + header == rows[next]);
    if (regression) {
      CHECK(of<float>(example, "score") == static_cast<float>(values[next]));
      CHECK(of<std::int64_t>(example, "scored") == 1);
    } else if (source.config.labels_required) {
      CHECK(of<std::int64_t>(example, "label") == labels[next]);
    } else {
      CHECK(of<std::int64_t>(example, "label") == -1);  // the reference gives such rows the first label
    }
    ++next;
  }
  CHECK(next == lengths.size());
  compare_rows(file, group, source, ours);
  return next;
}

// The row on which the reference stops is refused with its line number; the other rows are accepted.
void require_refused(const Source& source, const fs::path& vocab) {
  const Prepared ours = prepared(source, vocab, 128);
  std::size_t refused = 0;
  for (const prepare::Converted& converted : ours.rows) {
    if (!converted.faults.rejected() && !converted.faults.dropped()) continue;
    ++refused;
    CHECK_THAT(converted.faults.rows().at(0).message, Catch::Contains("line "));
  }
  CHECK(refused == 1);
}

}  // namespace

TEST_CASE("GLUE features equal the published preparation's, every row of every data set", "[glue][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("glue_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden GLUE features");
  for (const fs::path& path : files) {
    const test::GoldenFile file(path);
    const fs::path vocab = *data / "vocab" / file.string_attribute("", "vocab");
    std::size_t rows = 0;
    for (const std::string& task : file.groups()) {
      for (const std::string& name : file.groups(task)) {
        const std::string group = task + "/" + name;
        CAPTURE(group);
        const Source source = source_of(file, group);
        if (file.has_attribute(group, "outcome") && file.string_attribute(group, "outcome") != "ok") {
          require_refused(source, vocab);
          continue;
        }
        for (const std::string& setting : file.groups(group)) {
          if (setting[0] == 'L') rows += compare_features(file, group, source, vocab, setting);
        }
      }
    }
    CHECK(rows > 0);
    std::printf("%s: %zu rows equal\n", path.filename().c_str(), rows);
  }
}
