#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "data/dataset_info.h"
#include "etc_core/base/files.h"
#include "etc_core/base/memory_ledger.h"
#include "tests/data/store/samples.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"

using namespace etc;
using namespace etc::data;
using namespace etc::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

using Ids = std::vector<std::int64_t>;
constexpr const char* kDamagedAdvice = "(the file is damaged)";

std::string open_error(const std::vector<fs::path>& paths, const Schema& schema = sample_schema()) {
  return error_of([&] { DatasetReader(paths, schema); });
}

// Opens a copy of a good file after `change` has modified it; returns the message without the file's name.
class Damage {
 public:
  Damage() { write_samples(folder_ / "good.h5", 20); }

  template <typename Change>
  std::string operator()(Change&& change, const Schema& schema = sample_schema()) {
    const fs::path path = folder_ / "bad.h5";
    fs::copy_file(folder_ / "good.h5", path, fs::copy_options::overwrite_existing);
    {
      H5Edit edit(path);
      change(edit);
    }
    std::string message = open_error({path}, schema);
    const std::string name = "h5: " + path.string();
    if (message.starts_with(name)) message = message.substr(name.size());
    return message;
  }

  fs::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("what was written is read, in any order, with faults and counts", "[data][store]") {
  const TemporaryFolder folder;
  const auto rows = write_samples(folder / "a.h5", 500, 0, 300);
  const DatasetReader reader({folder / "a.h5"}, sample_schema());
  REQUIRE(reader.size() == 500);
  for (std::int64_t i = 0; i < 500; ++i) {
    const std::int64_t at = i * 173 % 500;
    REQUIRE(reader.read(at) == rows[static_cast<std::size_t>(at)]);
  }
  const auto lengths = reader.lengths("long");
  REQUIRE(lengths.size() == 500);
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < 500; ++i) {
    REQUIRE(lengths[i] == static_cast<std::int64_t>(std::get<Ids>(rows[i].at("long_token_ids")).size()));
    longest = std::max(longest, lengths[i]);
  }
  const DatasetInfo& info = reader.info();
  CHECK(info.max_long_len == longest);
  CHECK(info.examples == 500);
  CHECK(info.input_records == 625);
  CHECK(info.rejected == 125);
  CHECK(info.labelled);
  CHECK(info.split == "train");
  CHECK(info.source_files.at(0).bytes == 12345);
  CHECK(info.content_sha256.size() == 64);
  const auto faults = reader.faults();
  REQUIRE(faults.size() == 125);
  CHECK(faults[3].record_index == 3);
  CHECK(faults[3].byte_offset == 300);
  CHECK(faults[3].severity == Severity::drop);
  CHECK(faults[3].message == sample_fault(3).message);
  CHECK(read_dataset_info(folder / "a.h5").content_sha256 == info.content_sha256);

  const std::string where = "h5: " + (folder / "a.h5").string();
  CHECK(error_of([&] { reader.read(500); }) == where + ": expected an example index below 500, got 500");
  CHECK(error_of([&] { reader.read(-1); }) == where + ": expected an example index below 500, got -1");
  CHECK(error_of([&] { reader.lengths("words"); }) == where + ": task wikihop has no align class words");
  reader.require_vocabulary(std::string(64, 'a'));
  CHECK(error_of([&] { reader.require_vocabulary("00ff"); }) == where + ": vocab_sha256: expected 00ff, got " +
                                                                    std::string(64, 'a') +
                                                                    " (prepare the data with the model's vocabulary)");
}

TEST_CASE("read once in order, a data set is the same and most of its blocks are not kept", "[data][store]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "out.h5";
  const auto written = write_samples(path, 3000, 0, 400);  // several blocks in each long column
  const DatasetReader any({path}, sample_schema()), once({path}, sample_schema(), ReadOrder::once);
  const auto held_after = [&](const DatasetReader& reader) {
    const std::int64_t before = memory_ledger::report().total;
    for (std::int64_t i = 0; i < reader.size(); ++i) CHECK(reader.read(i) == written[static_cast<std::size_t>(i)]);
    return memory_ledger::report().total - before;
  };
  const std::int64_t all = any.cache_growth(), neighbours = once.cache_growth();
  CHECK(neighbours < all / 2);
  CHECK(held_after(any) >= all);
  const std::int64_t kept = held_after(once);
  CHECK(kept > 0);
  CHECK(kept <= neighbours);
  CHECK(once.read(7) == written[7]);  // any order is correct, only slower
}

TEST_CASE("an empty data set and empty examples are legal", "[data][store]") {
  const TemporaryFolder folder;
  write_examples(folder / "none.h5", {});
  const DatasetReader none({folder / "none.h5"}, sample_schema());
  CHECK(none.size() == 0);
  CHECK(none.lengths("long").empty());
  CHECK(none.faults().empty());

  Example empty = worked_example();
  for (auto& [name, value] : empty) {
    std::visit(
        [](auto& held) {
          if constexpr (requires { held.clear(); }) held.clear();
        },
        value);
  }
  write_examples(folder / "empty.h5", {empty, worked_example(), empty});
  const DatasetReader reader({folder / "empty.h5"}, sample_schema());
  CHECK(reader.read(0) == empty);
  CHECK(reader.read(1) == worked_example());
  CHECK(reader.read(2) == empty);
}

TEST_CASE("shards are read as one data set", "[data][store]") {
  const TemporaryFolder folder;
  std::vector<Example> rows;
  for (const auto& [name, first, count] :
       std::vector<std::tuple<std::string, int, int>>{{"a", 0, 8}, {"b", 8, 0}, {"c", 8, 12}}) {
    for (Example& row : write_samples(folder / (name + ".h5"), count, first)) rows.push_back(std::move(row));
  }
  const DatasetReader reader({folder / "a.h5", folder / "b.h5", folder / "c.h5"}, sample_schema());
  REQUIRE(reader.size() == 20);
  for (std::int64_t i = 19; i >= 0; --i) CHECK(reader.read(i) == rows[static_cast<std::size_t>(i)]);
  CHECK(reader.info().examples == 20);
  CHECK(reader.info().source_files.size() == 3);
  CHECK(reader.info().content_sha256.empty());
  std::vector<std::string> hashes;
  for (const char* file : {"a.h5", "b.h5", "c.h5"}) hashes.push_back(read_dataset_info(folder / file).content_sha256);
  CHECK(reader.content_hashes() == hashes);
  CHECK(reader.faults().size() == 5);
  CHECK(reader.lengths("global").size() == 20);

  DatasetInfo info = sample_info();
  info.vocab_sha256 = std::string(64, 'f');
  write_examples(folder / "d.h5", {worked_example()}, {}, info);
  CHECK(open_error({folder / "a.h5", folder / "d.h5"}) ==
        "h5: " + (folder / "d.h5").string() + ": vocab_sha256: expected " + std::string(64, 'a') + " as in " +
            (folder / "a.h5").string() + ", got " + std::string(64, 'f') +
            " (shards of one data set must be prepared alike)");
  info = sample_info();
  info.preprocess_config["long_seq_len"] = 512;
  write_examples(folder / "d.h5", {worked_example()}, {}, info);
  CHECK_THAT(open_error({folder / "a.h5", folder / "d.h5"}),
             Contains("preprocess_config: expected {\"do_lower_case\":true,\"long_seq_len\":4096") &&
                 Contains("got {\"do_lower_case\":true,\"long_seq_len\":512"));
  CHECK(open_error({}) == "h5: expected at least one file");
}

TEST_CASE("several readers and threads share the library", "[data][store]") {
  const TemporaryFolder folder;
  const auto rows = write_samples(folder / "a.h5", 200, 0, 2000);
  const DatasetReader first({folder / "a.h5"}, sample_schema()), second({folder / "a.h5"}, sample_schema());
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      const DatasetReader& reader = t % 2 == 0 ? first : second;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t at = (i * (2 * t + 7)) % rows.size();
        if (reader.read(static_cast<std::int64_t>(at)) != rows[at]) ++wrong[t];
      }
    });
  }
  // Meanwhile another data set is opened (probe and all) and one is written.
  write_samples(folder / "b.h5", 20);
  CHECK(DatasetReader({folder / "b.h5"}, sample_schema()).size() == 20);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("a file that is no data set of this task and version is refused with both values", "[data][store]") {
  const TemporaryFolder folder;
  const auto message = [&](const char* name) { return open_error({folder / name}); };
  CHECK(message("missing.h5") ==
        "h5: " + (folder / "missing.h5").string() + ": cannot open: No such file or directory");
  CHECK(open_error({folder.path()}) == "h5: " + folder.path().string() + ": expected a file, got a folder or a device");
  test::write_file(folder / "text.h5", "not HDF5");
  CHECK_THAT(message("text.h5"),
             Contains("text.h5: cannot open: ") && Contains("(not an HDF5 file, or a damaged one)"));
  test::write_file(folder / "empty.h5", "");
  CHECK_THAT(message("empty.h5"), Contains("(not an HDF5 file, or a damaged one)"));
  { H5Edit other(folder / "other.h5"); }
  CHECK_THAT(message("other.h5"), Contains("other.h5: format_version: is missing (run `etc prepare` again)"));
  CHECK_THAT(error_of([&] { read_dataset_info(folder / "other.h5"); }), Contains("format_version: is missing"));

  Damage damage;
  CHECK(damage([](H5Edit& file) { file.put_attribute("/", "format_version", 3); }) ==
        ": format_version: expected 1 or 2, got 3 (run `etc prepare` again)");
  CHECK(damage([](H5Edit& file) { file.put_attribute("/", "task", "nq"); }) ==
        ": task: expected wikihop, got nq (the file was prepared for another task)");
}

TEST_CASE("a data set with missing parts says which and why, shard by shard", "[data][store]") {
  const TemporaryFolder folder;
  DatasetInfo info = sample_info();
  write_examples(folder / "whole.h5", {worked_example()});
  info.missing = {{"a.json", "byte 7: the file ends inside a record"}, {"b.json.gz", "the gzip data ends early"}};
  write_examples(folder / "cut.h5", {worked_example()}, {}, info);
  const DatasetInfo told = read_dataset_info(folder / "cut.h5");
  REQUIRE(told.missing.size() == 2);
  CHECK(told.missing[1].name == "b.json.gz");
  CHECK(told.missing[1].reason == "the gzip data ends early");
  CHECK(read_dataset_info(folder / "whole.h5").missing.empty());

  const DatasetReader whole({folder / "whole.h5"}, sample_schema());
  CHECK(whole.missing_texts().empty());
  const DatasetReader both({folder / "whole.h5", folder / "cut.h5"}, sample_schema());
  CHECK(both.size() == 2);
  CHECK(both.info().missing.size() == 2);
  REQUIRE(both.missing_texts().size() == 2);
  CHECK(both.missing_texts()[0] == "h5: " + (folder / "cut.h5").string() +
                                       ": the data set is incomplete: a.json: byte 7: the file ends inside a record");
}

TEST_CASE("whole data sets are stored as before; incomplete ones are of a version that older programs refuse",
          "[data][store]") {
  const TemporaryFolder folder;
  DatasetInfo info = sample_info();
  write_examples(folder / "whole.h5", {worked_example()}, {}, info);
  DatasetWriter writer(folder / "cut.h5", sample_schema(), info);
  writer.append(worked_example());
  writer.mark_missing({"a.json", "cut"});
  writer.finish({}, 1, 0, 0);
  CHECK_THAT(error_of([&] { writer.mark_missing({"a.json", "late"}); }), Contains("the file is finished"));
  CHECK(GoldenFile(folder / "whole.h5").int_attribute("", "format_version") == 1);
  CHECK_THROWS(GoldenFile(folder / "whole.h5").string_attribute("", "incomplete"));
  CHECK(GoldenFile(folder / "cut.h5").int_attribute("", "format_version") == 2);
  CHECK(GoldenFile(folder / "cut.h5").string_attribute("", "incomplete") == R"([{"name":"a.json","reason":"cut"}])");
  const auto error_with = [&](const std::string& attribute) {
    test::write_file(folder / "bad.h5", read_file(folder / "cut.h5"));
    { H5Edit(folder / "bad.h5").put_attribute("/", "incomplete", attribute); }
    return open_error({folder / "bad.h5"});
  };
  CHECK_THAT(error_with("[]"), Contains("bad.h5: incomplete: expected a list that is not empty"));
  CHECK_THAT(error_with("{"), Contains("bad.h5: incomplete: not valid JSON"));
  CHECK_THAT(error_with("[{\"name\": 5, \"reason\": \"x\"}]"), Contains("expected a list of {\"name\", \"reason\"}"));
  { H5Edit(folder / "whole.h5").put_attribute("/", "format_version", 2); }
  CHECK_THAT(open_error({folder / "whole.h5"}), Contains("incomplete: is missing"));
}

TEST_CASE("damaged root attributes are refused", "[data][store]") {
  Damage damage;
  const auto set = [&](const char* name, auto value) {
    return damage([&](H5Edit& file) { file.put_attribute("/", name, value); });
  };
  CHECK(damage([](H5Edit& file) { file.remove_attribute("/", "split"); }) ==
        ": split: is missing (run `etc prepare` again)");
  CHECK(damage([](H5Edit& file) { file.put_list_attribute("/", "n_examples", 3); }) ==
        ": n_examples: expected a scalar attribute");
  CHECK(damage([](H5Edit& file) { file.put_float_attribute("/", "n_examples", 3); }) ==
        ": n_examples: expected floats of 4 bytes, got 8");
  CHECK(damage([](H5Edit& file) { file.put_variable_attribute("/", "split", "train"); }) ==
        ": split: expected a fixed-length string, got a variable-length type (they are refused)");
  CHECK(set("split", std::int64_t{3}) == ": split: expected a string attribute");
  CHECK(set("split", std::string("\xFF")) ==
        ": split: expected UTF-8, got an invalid sequence at byte 0 " + std::string(kDamagedAdvice));
  CHECK(set("n_examples", std::string("20")) == ": n_examples: expected a number type, got strings");
  CHECK(set("n_rejected", std::int64_t{-1}) ==
        ": n_rejected: expected a count from 0 to 281474976710656, got -1 " + std::string(kDamagedAdvice));
  CHECK_THAT(set("preprocess_config", std::string("{")), Contains(": preprocess_config"));
  CHECK(set("preprocess_config", std::string("[]")) ==
        ": preprocess_config: expected a JSON object " + std::string(kDamagedAdvice));
  CHECK_THAT(set("source_files", std::string("[{}]")), Contains(": source_files: expected a list of {\"name\""));
  CHECK_THAT(set("n_examples", std::int64_t{21}),
             Contains(":/examples/id/offsets: expected 22 elements (one per row and one more), got 21 "));
  CHECK_THAT(set("n_examples", INT64_MAX), Contains(": n_examples: expected a count from 0 to "));
}

TEST_CASE("examples longer than the capacities of their preparation are refused", "[data][store]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const Json& settings) {
    DatasetInfo info = sample_info();
    info.preprocess_config = settings;
    write_examples(folder / "a.h5", {worked_example()}, {}, info);  // 14 long and 9 global tokens
    return open_error({folder / "a.h5"});
  };
  CHECK(refusal({{"long_seq_len", 14}, {"global_seq_len", 9}}) == "no error");
  CHECK_THAT(refusal({{"long_seq_len", 13}, {"global_seq_len", 9}}),
             Catch::EndsWith("a.h5: example 0 has 14 long tokens: expected at most preprocess_config.long_seq_len=13 "
                             "(the file is damaged)"));
  CHECK_THAT(refusal({{"long_seq_len", 14}, {"global_seq_len", 8}}),
             Contains("example 0 has 9 global tokens: expected at most preprocess_config.global_seq_len=8"));
  // Data that do not state their capacities, and tasks whose keys mean something else.
  CHECK(refusal(Json::object()) == "no error");
  CHECK(refusal({{"global_seq_len", 1}}) == "no error");
}

TEST_CASE("the settings of the preparation come with each example where the schema asks for them", "[data][store]") {
  const TemporaryFolder folder;
  Schema schema = sample_schema();
  schema.features.push_back({"/preprocess_config", FeatureKind::string, StoredType::u8, "", {}, {}});
  DatasetInfo info = sample_info();
  info.preprocess_config = {{"share", 0.1}};
  {
    DatasetWriter writer(folder / "a.h5", schema, info);
    writer.append(worked_example());
    writer.finish({}, 1, 0, 0);
  }
  Example expected = worked_example();
  CHECK(DatasetReader({folder / "a.h5"}, sample_schema()).read(0) == expected);
  expected["/preprocess_config"] = std::string(R"({"share":0.1})");
  CHECK(DatasetReader({folder / "a.h5"}, schema).read(0) == expected);
}

TEST_CASE("a list that the settings leave out is not stored, and not read where a file has it", "[data][store]") {
  const TemporaryFolder folder;
  const Schema all = sample_schema();
  Schema schema = all;
  for (FeatureSpec& spec : schema.features) {
    if (spec.align == "vdom") spec.stored_with = [](const Json& settings) { return settings.value("boxes", true); };
  }
  DatasetInfo info = sample_info();
  const auto written = [&](const char* name, const Schema& by, const Example& example) {
    DatasetWriter writer(folder / name, by, info);
    writer.append(example);
    writer.finish({}, 1, 0, 0);
    return folder / name;
  };
  const auto read = [&](const fs::path& file) { return DatasetReader({file}, schema).read(0); };
  CHECK(read(written("stored.h5", schema, worked_example())) == worked_example());
  info.preprocess_config["boxes"] = false;
  CHECK_THAT(error_of([&] { written("refused.h5", schema, worked_example()); }),
             Contains("/examples/x_coords: expected an empty list"));
  Example without = worked_example();
  without["x_coords"] = std::vector<float>();
  const fs::path file = written("absent.h5", schema, without);
  CHECK(GoldenFile(file).has("examples/weight"));
  CHECK(!GoldenFile(file).has("examples/x_coords"));
  CHECK(read(file) == without);
  CHECK(DatasetReader({file}, schema).lengths("vdom")[0] == 0);
  CHECK(read(written("before.h5", all, worked_example())) == without);  // as before the setting counted
}

TEST_CASE("damaged borders are refused, naming data set, place and values", "[data][store]") {
  Damage damage;
  const std::string item_offsets = "/examples/candidates/item_offsets", offsets = "/examples/candidates/offsets";
  const auto borders = [&](const std::string& path, std::size_t at, std::int64_t value) {
    const DatasetReader good({damage / "good.h5"}, sample_schema());
    Ids values{0};
    std::int64_t bytes = 0, strings = 0;
    for (std::int64_t i = 0; i < good.size(); ++i) {
      const auto texts = std::get<std::vector<std::string>>(good.read(i).at("candidates"));
      for (const std::string& text : texts) {
        bytes += static_cast<std::int64_t>(text.size());
        if (path == item_offsets) values.push_back(bytes);
      }
      strings += static_cast<std::int64_t>(texts.size());
      if (path == offsets) values.push_back(strings);
    }
    const std::string unchanged =
        damage([&](H5Edit& file) { file.put_integers(path, values); });  // the written values, but in a new data set
    CHECK(unchanged == "no error");
    at = std::min(at, values.size() - 1);
    const std::int64_t before = at > 0 ? values[at - 1] : 0, was = values[at];
    values[at] = value;
    return std::tuple(damage([&](H5Edit& file) { file.put_integers(path, values); }), before, was, at);
  };
  for (const std::string& path : {item_offsets, offsets}) {
    const auto [start, b0, w0, a0] = borders(path, 0, 3);
    CHECK(start == ":" + path + ": expected 0 at the start, got 3 " + kDamagedAdvice);
    const auto [negative, b1, w1, a1] = borders(path, 7, -5);
    CHECK(negative ==
          ":" + path + ": expected non-decreasing, got -5 after " + std::to_string(b1) + " at 7 " + kDamagedAdvice);
    const auto [jump, b2, w2, a2] = borders(path, 5, INT64_MAX);
    CHECK_THAT(jump, Contains(path + ": expected non-decreasing, got ") && Contains("after 9223372036854775807 at 6"));
    const auto [end, b3, w3, a3] = borders(path, 1'000'000, 12'345);
    CHECK(end == ":" + path + ": expected " + std::to_string(w3) +
                     (path == offsets ? " (the number of strings)" : " (the length of values)") +
                     " at the end, got 12345 " + kDamagedAdvice);
  }
  CHECK(damage([](H5Edit& file) { file.put_integers("/examples/candidates/item_offsets", {}); }) ==
        ":/examples/candidates/item_offsets: expected at least 1 element, got 0 " + std::string(kDamagedAdvice));
  CHECK(damage([](H5Edit& file) { file.put_integers("/examples/label_id/values", Ids(19, 0), 4); }) ==
        ":/examples/label_id/values: expected 20 elements (one per row), got 19 " + std::string(kDamagedAdvice));
}

TEST_CASE("features of one align class must have equal borders", "[data][store]") {
  Damage damage;
  const std::string message = damage([](H5Edit& file) {
    Ids borders(21, 2);
    borders[0] = 0;
    file.put_integers("/examples/global_type_id/values", {1, 2}, 1);
    file.put_integers("/examples/global_type_id/offsets", borders);
  });
  CHECK_THAT(message, Contains(":/examples/global_type_id/offsets: expected the borders of global_token_ids (align "
                               "class global), got 2 instead of ") &&
                          Contains(" at 1 (the file is damaged)"));
}

TEST_CASE("types, shapes and storage outside the layout are refused", "[data][store]") {
  Damage damage;
  const std::string path = "/examples/label_id/values", text = "/examples/query/values";
  const auto put = [&](auto&& change) {
    std::string message = damage(change);
    return message.starts_with(":" + path + ": ") ? message.substr(path.size() + 3) : message;
  };
  const std::string refused = "expected a number type, got a variable-length type (they are refused)";
  CHECK(put([&](H5Edit& f) { f.put_variable_strings(path, std::vector<std::string>(20, "x")); }) == refused);
  CHECK(damage([&](H5Edit& f) { f.put_variable_strings(text, {"x"}); }) == ":" + text + ": " + refused);
  CHECK(put([&](H5Edit& f) { f.put_floats(path, std::vector<double>(20, 1), 4); }) == "expected integers, got float32");
  CHECK(put([&](H5Edit& f) { f.put_floats(path, std::vector<double>(20, 1), 8); }) ==
        "expected floats of 4 bytes, got 8");
  CHECK(put([&](H5Edit& f) { f.put_integers(path, Ids(20, 1), 8, false); }) ==
        "expected integers that fit into int64, got unsigned integers of 8 bytes");
  CHECK(put([&](H5Edit& f) {
          f.put_integers(path, Ids(20, 1), 4, true, {4, 5}, {});
        }) == "expected one dimension, got 2");
  CHECK(damage([&](H5Edit& f) { f.put_integers("/examples/x_coords/values", Ids(20, 1), 4); }) ==
        ":/examples/x_coords/values: expected floats, got int32");
  CHECK_THAT(damage([&](H5Edit& f) { f.put_integers(text, Ids(200, 65), 2); }),
             Contains(text + ": expected bytes (uint8), got int16"));
  CHECK_THAT(put([&](H5Edit& f) { f.put_scale_offset(path, Ids(20, 1)); }),
             Contains("expected the filters shuffle, deflate and fletcher32 only, got filter 6"));
  CHECK(put([&](H5Edit& f) { f.put_unwritten(path, 1'000'000, 16); }) ==
        "expected at most 0 elements in 0 stored bytes, got 1000000 (the file is damaged)");
  CHECK(put([&](H5Edit& f) {
          f.put_integers(path, Ids(20, 1), 4, true, {}, {1 << 25, true, false});
        }) == "expected chunks of at most 64 MiB, got 33554432 elements of 4 bytes");
  const fs::path raw = damage / "raw";
  test::write_file(raw, std::string(100, 'x'));
  CHECK(put([&](H5Edit& f) { f.put_external(path, raw, 20); }) ==
        "expected raw data in this file, got external raw data (it is refused)");
  CHECK(put([&](H5Edit& f) { f.put_virtual(path, damage / "good.h5", 20); }) ==
        "expected raw data in this file, got a virtual data set (they are refused)");
  CHECK_THAT(put([&](H5Edit& f) { f.put_soft_link(path, "/examples/flags/values"); }),
             Contains("expected an object of this file, got a soft link"));
  CHECK_THAT(put([&](H5Edit& f) { f.put_external_link(path, damage / "good.h5", path); }),
             Contains("expected an object of this file, got an external link"));
  CHECK_THAT(damage([&](H5Edit& f) { f.put_external_link("/examples/query", damage / "good.h5", "/examples/query"); }),
             Contains(":/examples/query: expected an object of this file, got an external link"));
  CHECK(damage([&](H5Edit& f) { f.remove("/rejects"); }) == ":/rejects: is missing (run `etc prepare` again)");
  CHECK(damage([&](H5Edit& f) { f.remove("/examples/query"); }) ==
        ":/examples/query: is missing (run `etc prepare` again)");
  CHECK(damage([&](H5Edit& f) { f.remove("/examples/query/offsets"); }) ==
        ":/examples/query/offsets: is missing (run `etc prepare` again)");
  CHECK_THAT(damage([&](H5Edit& f) { f.put_integers("/examples/query", {1}); }),
             Contains(":/examples/query: cannot open as a group: "));
  CHECK_THAT(damage([&](H5Edit& f) {
               f.remove(path);
               f.put_integers(path + "/values", {1});
             }),
             Contains(path + ": cannot open as a data set: "));
}

TEST_CASE("values outside their stored type and strings that are not UTF-8 are refused", "[data][store]") {
  Damage damage;
  Ids values(20, 1);
  values[7] = std::int64_t{1} << 40;
  CHECK(damage([&](H5Edit& f) { f.put_integers("/examples/label_id/values", values); }) ==
        ":/examples/label_id/values: expected values that fit into int32, got 1099511627776 at 7");
  for (const std::int64_t value : {std::int64_t{2147483648}, std::int64_t{-2147483649}}) {  // the nearest ones
    values[7] = value;
    CHECK(damage([&](H5Edit& f) { f.put_integers("/examples/label_id/values", values); }) ==
          fmt::format(":/examples/label_id/values: expected values that fit into int32, got {} at 7", value));
  }
  // Two strings that are well-formed only together: é cut in two.
  CHECK(damage([&](H5Edit& f) {
          f.put_integers("/examples/query/values", {0x61, 0xC3, 0xA9}, 1, false);
          Ids borders(21, 3);
          borders[0] = 0;
          borders[1] = 2;
          f.put_integers("/examples/query/offsets", borders);
        }) ==
        ":/examples/query/values: expected UTF-8, got an invalid sequence at byte 1 of string 0 (the file is "
        "damaged)");
  CHECK(damage([&](H5Edit& f) {
          f.put_integers("/rejects/message/values", {0xFF}, 1, false);
          f.put_integers("/rejects/message/offsets", {0, 0, 0, 1, 1, 1});
        }) ==
        ":/rejects/message/values: expected UTF-8, got an invalid sequence at byte 0 of string 2 (the file is "
        "damaged)");
}

TEST_CASE("any chunking, missing filters, wider integers and big-endian numbers are read", "[data][store]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.h5";
  const auto rows = write_samples(path, 20);
  Ids tokens, labels, flags;
  for (const Example& row : rows) {
    const auto& ids = std::get<Ids>(row.at("long_token_ids"));
    tokens.insert(tokens.end(), ids.begin(), ids.end());
    labels.push_back(std::get<std::int64_t>(row.at("label_id")));
    flags.push_back(std::get<std::int64_t>(row.at("flags")));
  }
  for (const H5Edit::Storage& storage : {H5Edit::Storage{0, false, false}, H5Edit::Storage{0, false, true},
                                         H5Edit::Storage{7, true, false}, H5Edit::Storage{100'000, false, true}}) {
    {
      H5Edit edit(path);
      edit.put_integers("/examples/long_token_ids/values", tokens, storage.chunk == 7 ? 8 : 4, true, {}, storage);
      edit.put_integers("/examples/label_id/values", labels, storage.chunk == 7 ? 1 : 2, true, {}, storage);
      edit.put_integers("/examples/flags/values", flags, storage.chunk == 7 ? 8 : 4, storage.chunk == 7, {}, storage);
    }
    CAPTURE(storage.chunk, storage.big_endian);
    const DatasetReader reader({path}, sample_schema());
    for (std::int64_t i = 0; i < 20; ++i) CHECK(reader.read(i) == rows[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("a changed byte of raw data is found by its checksum", "[data][store]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.h5";
  write_samples(path, 600, 0, 400);
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  test::write_file(path, bytes);
  CHECK_THAT(open_error({path}),
             Contains(path.string() + ":/examples/") && Contains("/values: cannot read: ") && Contains(kDamagedAdvice));
  bytes.resize(bytes.size() - 1);
  test::write_file(path, bytes);
  CHECK_THAT(open_error({path}), Contains("cannot open: truncated file"));
}
