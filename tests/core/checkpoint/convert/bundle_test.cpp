#include <algorithm>
#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_reader.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_writer.h"
#include "etc_core/checkpoint/convert/tf_bundle/table.h"
#include "etc_core/checkpoint/convert/tf_bundle/wire.h"
#include "tests/core/checkpoint/convert/samples.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::convert;
using Catch::Contains;
using test::Numbers;
using test::read_all;
namespace fs = std::filesystem;

namespace {

// The prefixes of all bundles below a folder.
std::vector<fs::path> bundles_below(const std::optional<fs::path>& folder) {
  std::vector<fs::path> prefixes;
  if (!folder || !fs::exists(*folder)) return prefixes;
  for (const auto& entry : fs::recursive_directory_iterator(*folder)) {
    if (entry.path().extension() == ".index") prefixes.push_back(fs::path(entry.path()).replace_extension());
  }
  std::sort(prefixes.begin(), prefixes.end());
  return prefixes;
}

// Bundles that TensorFlow itself wrote.
std::vector<fs::path> real_bundles() {
  std::vector<fs::path> prefixes;
  for (const auto& folder : {test::golden_folder(), test::real_data_folder()}) {
    if (!folder) continue;
    for (const char* below : {"ckpt", "checkpoints"}) {
      for (const fs::path& prefix : bundles_below(*folder / below)) prefixes.push_back(prefix);
    }
  }
  if (prefixes.empty()) test::skip("no TensorFlow checkpoints");
  return prefixes;
}

bool has_data(const fs::path& prefix) {
  return fs::exists(shard_path(prefix, 0, TfBundle(prefix).shards()));
}

void write_sample(const fs::path& prefix, std::int64_t shards, std::size_t block_bytes = 256 << 10) {
  TfBundleWriter writer(shards, block_bytes);
  for (int i = 0; i < 9; ++i) {
    const std::string name = fmt::format("layer_{}/kernel", i);
    writer.add(name, Tensor::from(test::random_floats(6 * (i + 1), static_cast<std::uint64_t>(i)), {i + 1, 6},
                                  Purpose::weights));
  }
  writer.add("empty", Tensor::empty({0, 4}, Purpose::weights));
  writer.add_i64("global_step", 1234);
  writer.write(prefix);
}

// Writes a bundle of one shard with these entries, valid or not, in a valid table.
void write_entries(const fs::path& prefix, const std::map<std::string, std::string>& messages,
                   const std::string& header = bundle_header_message({1}), const std::string& data = "12345678") {
  TableWriter table;
  table.add("", header);
  for (const auto& [name, message] : messages) table.add(name, message);
  test::write_file(prefix.string() + ".index", table.finish());
  test::write_file(shard_path(prefix, 0, 1), data);
}

BundleEntry entry_of(std::vector<std::int64_t> shape, std::uint64_t offset, std::uint64_t size) {
  BundleEntry entry;
  entry.dtype = StoredDtype::f32;
  entry.shape = std::move(shape);
  entry.offset = offset;
  entry.size = size;
  return entry;
}

}  // namespace

TEST_CASE("a bundle gives back names, shapes and numbers, in one shard or several", "[convert]") {
  const test::TemporaryFolder folder;
  for (const std::int64_t shards : {1, 2, 5, 20}) {
    CAPTURE(shards);
    write_sample(folder / "m.ckpt", shards, shards == 2 ? 64 : 256 << 10);
    const TfBundle bundle(folder / "m.ckpt");
    REQUIRE(bundle.shards() == shards);
    REQUIRE(bundle.tensors().size() == 11);
    const Numbers numbers = read_all(bundle);
    for (int i = 0; i < 9; ++i) {
      const std::string name = fmt::format("layer_{}/kernel", i);
      REQUIRE(bundle.at(name).shape == std::vector<std::int64_t>{i + 1, 6});
      REQUIRE(
          test::same_bits(numbers.floats.at(name), test::random_floats(6 * (i + 1), static_cast<std::uint64_t>(i))));
    }
    REQUIRE(numbers.floats.at("empty").empty());
    REQUIRE(numbers.integers.at("global_step") == std::vector<std::int64_t>{1234});
  }
  const TfBundle bundle(folder / "m.ckpt");
  REQUIRE_THROWS_WITH(bundle.at("none"), Contains("m.ckpt: no tensor none"));
  std::vector<float> one(1);
  REQUIRE_THROWS_WITH(bundle.read_floats("global_step", one.data()),
                      Contains("global_step: expected F32, F16 or BF16, got I64 []"));
  REQUIRE_THROWS_WITH(bundle.read_integers("empty"), Contains("empty: expected I64 or I32, got F32 [0, 4]"));
}

TEST_CASE("TensorFlow's own checkpoints are listed as they are known to be", "[convert][golden]") {
  int listed = 0;
  for (const fs::path& prefix : real_bundles()) {
    const fs::path list = prefix.parent_path() / "variables.json";
    if (!fs::exists(list)) continue;
    CAPTURE(prefix.string());
    const TfBundle bundle(prefix);
    const Json expected = read_json_file(list);
    REQUIRE(bundle.tensors().size() == expected.size());
    const std::map<std::string, StoredDtype> dtypes = {
        {"float32", StoredDtype::f32}, {"int64", StoredDtype::i64}, {"int32", StoredDtype::i32}};
    for (const Json& variable : expected) {
      const auto name = variable.at("name").get<std::string>();
      CAPTURE(name);
      const BundleEntry& entry = bundle.entry(name);
      REQUIRE(entry.dtype == dtypes.at(variable.at("dtype")));
      REQUIRE(Json(entry.shape) == variable.at("shape"));
      REQUIRE(entry.offset == variable.at("offset"));
      REQUIRE(entry.size == variable.at("size"));
      REQUIRE(entry.masked_crc == variable.at("masked_crc32c"));
    }
    ++listed;
  }
  if (listed == 0) test::skip("no lists of variables");
}

TEST_CASE("TensorFlow's own checkpoints read and written again are the same bytes", "[convert][golden]") {
  const test::TemporaryFolder folder;
  for (const fs::path& prefix : real_bundles()) {
    CAPTURE(prefix.string());
    if (!has_data(prefix)) {
      const TfBundle bundle(prefix);
      std::vector<float> numbers(1);
      REQUIRE_THROWS_WITH(bundle.read_raw(bundle.tensors().begin()->first, numbers.data()), Contains("cannot open"));
      continue;
    }
    const TfBundle bundle(prefix);
    const Numbers numbers = read_all(bundle);
    TfBundleWriter writer(bundle.shards());
    for (const auto& [name, values] : numbers.floats) writer.add(name, bundle.at(name).shape, values.data());
    for (const auto& [name, values] : numbers.integers) writer.add_i64(name, values.at(0));
    writer.write(folder / "again");
    CHECK(read_file(folder / "again.index") == read_file(prefix.string() + ".index"));
    CHECK(read_file(shard_path(folder / "again", 0, 1)) == read_file(shard_path(prefix, 0, 1)));
  }
}

TEST_CASE("a damaged bundle is refused, naming file and tensor", "[convert]") {
  const test::TemporaryFolder folder;
  const fs::path prefix = folder / "m";
  const auto message = [](std::vector<std::int64_t> shape, std::uint64_t offset, std::uint64_t size) {
    return bundle_entry_message(entry_of(std::move(shape), offset, size));
  };
  const auto refuses = [&](const std::map<std::string, std::string>& entries, const std::string& text) {
    write_entries(prefix, entries);
    REQUIRE_THROWS_WITH(TfBundle(prefix), Contains("m.index: ") && Contains(text));
  };
  REQUIRE_THROWS_WITH(TfBundle(folder / "none"), Contains("none.index: cannot open"));

  test::write_file(prefix.string() + ".index", "x");
  fs::resize_file(prefix.string() + ".index", std::uint64_t{1} << 31);  // sparse: takes no disk space
  REQUIRE_THROWS_WITH(TfBundle(prefix), Contains("m.index: ") && Contains("16777216"));

  refuses({{"a", message({2}, 0, 4)}}, "a: F32 [2] has 4 bytes, which do not agree with type and shape");
  refuses({{"a", message({std::int64_t{1} << 40, std::int64_t{1} << 40, 0}, 0, 0)}}, "do not agree");
  refuses({{"a", message({1}, 0, 4)}, {"b", message({1}, 3, 4)}}, "a and b overlap in shard 0");
  refuses({{"a", message({2}, 0, 8)}, {"b", message({1}, 0, 4)}}, "overlap in shard 0");
  refuses({{"a", message({1}, 0, 4) + std::string("\x3a\x00", 2)}}, "a: saved in slices");
  refuses({{"a", message({1}, 0, 4) + "\x18\x01"}}, "a: shard: expected 0 … 0, got 1");
  refuses({{"a", "\x08"}}, "a: expected 1 more bytes, got 0");
  refuses({{"a", "\x0f"}}, "unknown wire type 7");
  refuses({{"a", message({1}, 0, 4) + "\x12\x02\x18\x01"}}, "expected a known rank");
  refuses({{"a", message({1}, 0, 4) + "\x30\x01"}}, "field 6: expected a checksum");
  refuses({{"a", message({-1}, 0, 4)}}, "shape: expected sizes >= 0, got -1");
  refuses({{"a", message(std::vector<std::int64_t>(255, 1), 0, 4)}}, "expected at most 254 dimensions");
  refuses({{"a", message({1}, ~std::uint64_t{0}, 4)}}, "field 4: expected a number >= 0");

  write_entries(prefix, {}, "\x08\x01\x10\x01");
  REQUIRE_THROWS_WITH(TfBundle(prefix), Contains("header: the checkpoint was written on a big-endian machine"));
  write_entries(prefix, {}, std::string("\x1a\x02\x08\x01", 4));
  REQUIRE_THROWS_WITH(TfBundle(prefix), Contains("header: shards: expected 1 … 99999, got 0"));
  test::write_file(prefix.string() + ".index", TableWriter().finish());
  REQUIRE_THROWS_WITH(TfBundle(prefix), Contains("an empty table: expected a header"));
  TableWriter headless;
  headless.add("a", message({1}, 0, 4));
  test::write_file(prefix.string() + ".index", headless.finish());
  REQUIRE_THROWS_WITH(TfBundle(prefix), Contains("no header: expected the empty name first, got a"));
}

TEST_CASE("numbers outside their shard or with another checksum are refused", "[convert]") {
  const test::TemporaryFolder folder;
  const fs::path prefix = folder / "m";
  float number;
  write_entries(prefix, {{"a", bundle_entry_message(entry_of({1}, 6, 4))}});
  REQUIRE_THROWS_WITH(TfBundle(prefix).read_floats("a", &number),
                      Contains("m.data-00000-of-00001: a: expected 4 bytes at 6, the file has 8"));
  // A declared size beyond the file is detected before memory is allocated.
  const std::int64_t huge = std::int64_t{1} << 50;
  write_entries(prefix, {{"a", bundle_entry_message(entry_of({huge}, 0, 4 * static_cast<std::uint64_t>(huge)))}});
  REQUIRE_THROWS_WITH(TfBundle(prefix).read_floats("a", &number), Contains("the file has 8"));
  write_entries(prefix, {{"a", bundle_entry_message(entry_of({1}, 4, 4))}});
  REQUIRE_THROWS_WITH(TfBundle(prefix).read_floats("a", &number), Contains("a: checksum: expected 00000000, got "));
  fs::remove(shard_path(prefix, 0, 1));
  REQUIRE_THROWS_WITH(TfBundle(prefix).read_floats("a", &number), Contains("data-00000-of-00001: cannot open"));

  const std::string message =  // dtype 7: strings
      std::string("\x08\x07\x12\x04\x12\x02\x08\x02\x28\x06", 10);
  write_entries(prefix, {{"s", message}});
  const TfBundle strings(prefix);
  REQUIRE(strings.at("s").text() == "strings [2]");
  REQUIRE_THROWS_WITH(strings.read_floats("s", &number), Contains("s: expected F32, F16 or BF16, got strings [2]"));
  REQUIRE_THROWS_WITH(strings.read_raw("s", &number), Contains("s: expected numbers, got strings [2]"));
}

TEST_CASE("a writer refuses a name used twice", "[convert]") {
  const test::TemporaryFolder folder;
  TfBundleWriter writer;
  writer.add_i64("a", 1);
  writer.add_i64("a", 2);
  REQUIRE_THROWS_WITH(writer.write(folder / "m"), Contains("a comes after a"));
}

namespace {

// Mutants of the index file and the data file, and of the messages in a valid table.
void read_bundle_mutants(int count) {
  const test::TemporaryFolder folder;
  const fs::path good = folder / "good", bad = folder / "bad";
  write_sample(good, 1);
  const std::string index = read_file(good.string() + ".index"), data = read_file(shard_path(good, 0, 1));
  std::map<std::string, std::string> messages;
  std::string header;
  for_each_table_entry(index, "index", [&](std::string_view key, std::string_view value) {
    if (key.empty()) {
      header = value;
    } else {
      messages.emplace(key, value);
    }
  });
  int refused = 0;
  const auto attempt = [&] {
    try {
      const TfBundle bundle(bad);
      // As in a conversion: no memory is allocated for more bytes than the data file can hold.
      std::uint64_t total = 0;
      for (const auto& [name, tensor] : bundle.tensors()) total += tensor.bytes();
      if (total <= data.size() + 4096) read_all(bundle);
      for (const auto& [name, tensor] : bundle.tensors()) {
        if (tensor.bytes() > data.size()) {
          char byte;
          REQUIRE_THROWS_AS(bundle.read_raw(name, &byte), Error);
        }
      }
    } catch (const Error&) {
      ++refused;
    }
  };
  for (int seed = 0; seed < count; ++seed) {
    const auto number = static_cast<std::uint64_t>(seed);
    test::write_file(bad.string() + ".index", test::mutate(index, number));
    test::write_file(shard_path(bad, 0, 1), data);
    attempt();
    test::write_file(bad.string() + ".index", index);
    test::write_file(shard_path(bad, 0, 1), test::mutate(data, number));
    attempt();
    auto damaged = messages;
    auto victim = std::next(damaged.begin(), static_cast<std::ptrdiff_t>(number % damaged.size()));
    victim->second = test::mutate(victim->second, number);
    write_entries(bad, damaged, number % 8 == 0 ? test::mutate(header, number) : header, data);
    attempt();
  }
  CHECK(refused > count);
}

}  // namespace

TEST_CASE("mutants of a bundle are read or refused, never crash", "[convert]") {
  read_bundle_mutants(200);
}

TEST_CASE("many mutants of a bundle are read or refused, never crash", "[convert][slow]") {
  read_bundle_mutants(5000);
}
