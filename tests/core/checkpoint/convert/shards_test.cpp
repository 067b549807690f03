// Sharded checkpoints with an index.

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "tests/core/checkpoint/convert/samples.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"

using namespace etc;
using namespace etc::convert;
using Catch::Contains;
using test::HubBert;
namespace fs = std::filesystem;

namespace {

const std::string kIndex = "model.safetensors.index.json";

std::string shard_name(int i) {
  return fmt::format("model-0000{}-of-00003.safetensors", i + 1);
}

// A BERT in three files with its index.
struct Shards {
  test::TemporaryFolder folder;
  HubBert hub{test::small_bert()};
  Json map = Json::object();

  Shards() {
    std::vector<TensorFileWriter> writers(3);
    int i = 0;
    for (const auto& [name, values] : hub.tensors) {
      writers[static_cast<std::size_t>(i % 3)].add(name, values);
      map[name] = shard_name(i++ % 3);
    }
    for (i = 0; i < 3; ++i) writers[static_cast<std::size_t>(i)].write(folder / shard_name(i));
    write(map);
  }
  void write(const Json& weight_map) const {
    const Json index = {{"metadata", {{"total_size", 1}}}, {"weight_map", weight_map}};
    test::write_file(folder / kIndex, json_line(index));
  }
  void refuses(const std::string& message) const { CHECK_THROWS_WITH(open_tensors(folder.path()), Contains(message)); }
};

void read_shard_mutants(std::uint64_t count) {
  const Shards shards;
  const std::string index = read_file(shards.folder / kIndex), first = read_file(shards.folder / shard_name(0));
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const bool of_index = seed % 2 == 0;
    test::write_file(shards.folder / kIndex, of_index ? test::mutate(index, seed) : index);
    test::write_file(shards.folder / shard_name(0), of_index ? first : test::mutate(first, seed));
    try {
      test::read_all(*open_tensors(shards.folder.path()));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > count / 2);
}

}  // namespace

TEST_CASE("a checkpoint in shards holds the tensors of one in a single file, bit by bit", "[convert]") {
  const Shards shards;
  for (const fs::path& path : {shards.folder.path(), shards.folder / kIndex}) {
    const auto source = open_tensors(path);
    CHECK(source->where() == (shards.folder / kIndex).string());
    CHECK_NOTHROW(source->require_numbers());
    REQUIRE(source->tensors().size() == shards.hub.tensors.size());
    for (const auto& [name, values] : shards.hub.tensors) {
      CAPTURE(name);
      REQUIRE(source->at(name).shape == values.shape());
      std::vector<float> got(static_cast<std::size_t>(values.size()));
      source->read_floats(name, got.data());
      CHECK(std::equal(got.begin(), got.end(), values.data()));
    }
    float number = 0;
    CHECK_THROWS_WITH(source->read_floats("none", &number), Contains(kIndex + ": no tensor none"));
  }
  // A single file with all tensors is preferred to shards.
  shards.hub.write(shards.folder / "model.safetensors");
  CHECK(open_tensors(shards.folder.path())->where() == (shards.folder / "model.safetensors").string());
}

TEST_CASE("PyTorch's own files are read in shards, too", "[convert]") {
  const test::TemporaryFolder folder;
  const std::string one = test::bytes_of(std::vector<float>{1, 2}), two = test::bytes_of(std::vector<float>{3});
  test::write_file(folder / "a.bin", test::torch_zip({{"a", "FloatStorage", {2}, one}}));
  test::write_file(folder / "b.bin", test::torch_stream({{"b", "FloatStorage", {1}, two}}));
  test::write_file(folder / "pytorch_model.bin.index.json", R"({"weight_map": {"a": "a.bin", "b": "b.bin"}})");
  const test::Numbers numbers = test::read_all(*open_tensors(folder.path()));
  CHECK(numbers.floats.at("a") == std::vector<float>{1, 2});
  CHECK(numbers.floats.at("b") == std::vector<float>{3});
}

TEST_CASE("an index that does not fit its shards is refused, naming tensor and file", "[convert]") {
  const Shards shards;
  const std::string name = "bert.embeddings.LayerNorm.bias";
  const auto with = [&](const Json& file) {
    Json map = shards.map;
    map[name] = file;
    shards.write(map);
  };
  for (const Json& file :
       {Json("../model.safetensors"), Json("/etc/passwd"), Json("."), Json(".."), Json(""), Json(3)}) {
    with(file);
    shards.refuses(kIndex + ": weight_map: " + name + ": expected the name of a file beside the index, got " +
                   json_line(file));
  }
  with(shard_name(1));
  shards.refuses(name + ": expected in " + shard_name(1) + ", got a file without it");
  with("none.safetensors");
  shards.refuses("none.safetensors: cannot open");
  with(kIndex);  // the index names itself as a shard: no endless recursion
  shards.refuses(kIndex + ": header: expected at most");
  for (const char* none : {"{}", "[]", R"({"weight_map": {}})", R"({"weight_map": []})"}) {
    test::write_file(shards.folder / kIndex, none);
    shards.refuses(kIndex + ": expected a checkpoint, or the index of its shards with a weight_map");
  }
  shards.write(shards.map);
  shards.hub.write(shards.folder / shard_name(1));  // now holds all tensors
  shards.refuses(": expected in one shard, got it in " + shard_name(0) + " and " + shard_name(1));
  fs::remove(shards.folder / kIndex);
  shards.refuses("(shards: with " + kIndex + ")");
}

TEST_CASE("mutants of an index and of a shard are read or refused, never crash", "[convert]") {
  read_shard_mutants(200);
}

TEST_CASE("many mutants of an index and of a shard are read or refused, never crash", "[convert][slow]") {
  read_shard_mutants(5000);
}
