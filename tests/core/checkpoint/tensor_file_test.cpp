#include "etc_core/checkpoint/tensor_file.h"

#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/memory_ledger.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"
#include "tests/support/python.h"

using namespace etc;
using Catch::Contains;

namespace {

// Writes a file with this header (and its true length) and these bytes of tensors.
void write_raw(const std::filesystem::path& path, const std::string& header, const std::string& data) {
  const std::uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  test::write_file(path, bytes + header + data);
}

TensorFileWriter example_writer() {
  TensorFileWriter writer;
  writer.add("layer/kernel", Tensor::from({1, -2, 3.5f, 0, 1e-40f, 6}, {2, 3}, Purpose::weights));
  writer.add("empty", Tensor::empty({0, 4}, Purpose::weights));
  writer.add_i64("step", {-1, std::numeric_limits<std::int64_t>::max()});
  writer.add_u64("random/\"state\"\n", {std::numeric_limits<std::uint64_t>::max()});
  writer.add("scalar", {}, [] {
    static const float value = 7;
    return &value;
  }());
  writer.set_metadata("format", "pt");
  writer.set_metadata("note", "ä\"\\");
  return writer;
}

}  // namespace

TEST_CASE("a tensor file gives back names, shapes, numbers and metadata", "[checkpoint]") {
  const test::TemporaryFolder folder;
  example_writer().write(folder / "a.safetensors");
  const TensorFileReader file(folder / "a.safetensors");
  REQUIRE(file.entries().size() == 5);
  REQUIRE(file.entry("layer/kernel").shape == std::vector<std::int64_t>{2, 3});
  const Tensor kernel = file.read_tensor("layer/kernel", Purpose::weights);
  REQUIRE(std::vector<float>(kernel.data(), kernel.data() + 6) == std::vector<float>{1, -2, 3.5f, 0, 1e-40f, 6});
  REQUIRE(file.read_tensor("empty", Purpose::weights).size() == 0);
  REQUIRE(file.read_tensor("scalar", Purpose::weights).data()[0] == 7);
  REQUIRE(file.read_i64("step") == std::vector<std::int64_t>{-1, std::numeric_limits<std::int64_t>::max()});
  REQUIRE(file.read_u64("random/\"state\"\n") == std::vector<std::uint64_t>{std::numeric_limits<std::uint64_t>::max()});
  REQUIRE(file.metadata().at("note") == "ä\"\\");
  REQUIRE_THROWS_WITH(file.read_i64("layer/kernel"), Contains("layer/kernel: expected I64 or I32, got F32"));
  REQUIRE_THROWS_WITH(file.read_tensor("step", Purpose::weights), Contains("step: expected F32, F16 or BF16, got I64"));
  REQUIRE_THROWS_WITH(file.entry("none"), Contains("no tensor none"));
}

TEST_CASE("equal contents give byte-equal tensor files with aligned data", "[checkpoint]") {
  const test::TemporaryFolder folder;
  example_writer().write(folder / "a");
  example_writer().write(folder / "b");
  const std::string bytes = read_file(folder / "a");
  REQUIRE(bytes == read_file(folder / "b"));
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  REQUIRE((8 + header) % 64 == 0);
}

TEST_CASE("a large tensor is read where the file has it, and outlives reader and name", "[checkpoint]") {
  const test::TemporaryFolder folder;
  constexpr std::int64_t kRows = 128, kColumns = 256;
  std::vector<float> numbers(kRows * kColumns);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) * 0.5f;
  TensorFileWriter writer;  // sizes that would misalign later tensors are added first, but written last
  writer.add("three", {3}, numbers.data());
  writer.add("large", {kRows, kColumns}, numbers.data());
  writer.add("line", {16}, numbers.data());
  writer.add("odd", {kRows * kColumns - 1}, numbers.data());
  writer.write(folder / "a");
  auto file = std::make_unique<TensorFileReader>(folder / "a");
  CHECK(file->is_mappable("large"));
  CHECK_FALSE(file->is_mappable("line"));  // small
  CHECK_FALSE(file->is_mappable("odd"));   // after three numbers, not aligned
  REQUIRE_THROWS_WITH(file->map_tensor("odd", Purpose::weights), Contains("odd: cannot be mapped"));
  CHECK(file->entry("large").begin == 0);
  CHECK(file->entry("line").begin % 64 == 0);
  const auto weights = [] { return memory_ledger::report().current[static_cast<int>(Purpose::weights)]; };
  const std::int64_t before = weights();
  {
    const Tensor mapped = file->map_tensor("large", Purpose::weights),
                 copy = file->read_tensor("odd", Purpose::scratch);
    CHECK(weights() == before + kRows * kColumns * 4);
    file.reset();
    std::filesystem::remove(folder / "a");
    CHECK(mapped.shape() == std::vector<std::int64_t>{kRows, kColumns});
    CHECK(std::equal(numbers.begin(), numbers.end(), mapped.data()));
    CHECK(std::equal(numbers.begin(), numbers.end() - 1, copy.data()));
  }
  CHECK(weights() == before);
}

TEST_CASE("a file that was cut off after it was opened is refused, not mapped", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const std::vector<float> numbers(1 << 16, 1.0f);
  TensorFileWriter writer;
  writer.add("large", {1 << 16}, numbers.data());
  writer.write(folder / "a");
  const TensorFileReader file(folder / "a");
  std::filesystem::resize_file(folder / "a", 1 << 12);
  REQUIRE_THROWS_WITH(file.map_tensor("large", Purpose::weights), Contains("(cut off?)"));
  REQUIRE_THROWS_WITH(TensorFileReader(folder / "a"), Contains("cut off"));
}

TEST_CASE("a tensor that the system does not map has no memory, and can be read", "[checkpoint]") {
  const test::TemporaryFolder folder;
  constexpr std::int64_t kNumbers = 1 << 20;
  const std::vector<float> numbers(kNumbers, 1.5f);
  TensorFileWriter writer;
  writer.add("large", {kNumbers}, numbers.data());
  writer.write(folder / "a");
  const TensorFileReader file(folder / "a");
  Tensor copy = Tensor::empty({kNumbers}, Purpose::scratch);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 1 << 20;  // less than the process uses, so further mappings fail
  REQUIRE(::setrlimit(RLIMIT_AS, &none) == 0);
  const Tensor mapped = file.map_tensor("large", Purpose::weights);
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK_FALSE(mapped);
  file.read_floats("large", copy.data());
  CHECK(copy.data()[kNumbers - 1] == 1.5f);
}

TEST_CASE("a tensor name is used once", "[checkpoint]") {
  TensorFileWriter writer = example_writer();
  REQUIRE_THROWS_WITH(writer.add_i64("step", {1}), Contains("step is added twice"));
  REQUIRE_THROWS_WITH(writer.add_i64("__metadata__", {1}), Contains("reserved"));
}

TEST_CASE("half precision numbers are widened exactly", "[checkpoint]") {
  const test::TemporaryFolder folder;
  // 1, -2, 65504, smallest subnormal, largest subnormal, infinity | the same idea in bfloat16
  const std::uint16_t half[] = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x83ff, 0x7c00};
  const std::uint16_t brain[] = {0x3f80, 0xc000};
  std::string data(16, '\0');
  std::memcpy(data.data(), half, 12);
  std::memcpy(data.data() + 12, brain, 4);
  write_raw(folder / "a",
            R"({"h":{"dtype":"F16","shape":[6],"data_offsets":[0,12]},)"
            R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[12,16]}})",
            data);
  const TensorFileReader file(folder / "a");
  const Tensor h = file.read_tensor("h", Purpose::weights), b = file.read_tensor("b", Purpose::weights);
  const float expected[] = {1, -2, 65504, 0x1p-24f, -1023 * 0x1p-24f, INFINITY};
  for (int i = 0; i < 6; ++i) REQUIRE(h.data()[i] == expected[i]);
  REQUIRE(b.data()[0] == 1);
  REQUIRE(b.data()[1] == -2);
}

TEST_CASE("a damaged tensor file is refused with the reason", "[checkpoint]") {
  struct Case {
    std::string header, data, message;
  };
  const std::string good = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  const std::vector<Case> cases = {
      {"{\"a\":{" + good + "},\"a\":{" + good + "}}", "1234", "duplicate key \"a\""},
      {"[1]", "", "header: expected a JSON object"},
      {"", "", "header: expected a JSON object"},
      {"{\"a\":{" + good, "1234", "not valid JSON"},
      {"{\"a\":{" + good + "}}", "12345", "expected 4 bytes of tensors, got 5"},
      {"{\"a\":{" + good + "}}", "123", "expected 4 bytes of tensors, got 3"},
      {"{\"a\":{" + good + ",\"x\":1}}", "1234", "a: unknown key x"},
      {"{\"a\":4}", "1234", "a: expected an object"},
      {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", "1234", "dtype: expected a known type"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234", "shape: expected sizes >= 0"},
      {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", "1234", "shape: expected sizes >= 0"},
      {R"({"a":{"dtype":"F32","shape":7,"data_offsets":[0,4]}})", "1234", "shape: expected a list"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", "", "is too large"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]}})", "", "is too large"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,0]}})", "", "shape: expected sizes"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234", "expected 8 bytes for F32 [2], got [0, 4]"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "1234", "expected 4 bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", "1234", "two offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "12345678",
       "a: data_offsets: expected to begin at 0"},
      {"{\"a\":{" + good + "},\"b\":{" + good + "}}", "1234", "b: data_offsets: expected to begin at 4, got 0"},
      {R"({"__metadata__":{"a":1}})", "", "__metadata__: a: expected a string"},
      {R"({"__metadata__":7})", "", "__metadata__: expected an object"}};
  const test::TemporaryFolder folder;
  for (const Case& one : cases) {
    CAPTURE(one.header);
    write_raw(folder / "a", one.header, one.data);
    REQUIRE_THROWS_WITH(TensorFileReader(folder / "a"), Contains(one.message));
  }
  test::write_file(folder / "a", "1234567");
  REQUIRE_THROWS_WITH(TensorFileReader(folder / "a"), Contains("at least 8 bytes, got 7"));
  test::write_file(folder / "a", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10));
  REQUIRE_THROWS_WITH(TensorFileReader(folder / "a"), Contains("header: expected at most 2 bytes"));
  // A header of 2 GB in a sparse file of that size.
  test::write_file(folder / "a", std::string("\0\0\0\x80\0\0\0\0{", 9));
  std::filesystem::resize_file(folder / "a", (std::uint64_t{1} << 31) + 100);
  REQUIRE_THROWS_WITH(TensorFileReader(folder / "a"),
                      Contains("header: expected at most 16777216 bytes, got 2147483648"));
  REQUIRE_THROWS_WITH(TensorFileReader(folder / "none"), Contains("none: cannot open"));
  REQUIRE_THROWS_WITH(TensorFileReader(folder.path()), Contains("expected a regular file"));
}

namespace {

// Reads every tensor of mutated files; errors are expected, anything else ends the program.
void read_mutants(int count) {
  const test::TemporaryFolder folder;
  example_writer().write(folder / "good");
  const std::string good = read_file(folder / "good");
  int refused = 0;
  for (int seed = 0; seed < count; ++seed) {
    test::write_file(folder / "bad", test::mutate(good, static_cast<std::uint64_t>(seed)));
    try {
      const TensorFileReader file(folder / "bad");
      for (const auto& [name, entry] : file.entries()) {
        switch (entry.dtype) {
          case StoredDtype::i64:
          case StoredDtype::i32:
            file.read_i64(name);
            break;
          case StoredDtype::u64:
          case StoredDtype::u32:
            file.read_u64(name);
            break;
          default:
            file.read_tensor(name, Purpose::scratch);
            break;
        }
      }
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > count / 4);  // changes of numbers are not detected, but most of this file is header
}

}  // namespace

TEST_CASE("mutants of a tensor file are read or refused, never crash", "[checkpoint]") {
  read_mutants(200);
}

TEST_CASE("many mutants of a tensor file are read or refused, never crash", "[checkpoint][slow]") {
  read_mutants(5000);
}

TEST_CASE("the public safetensors library reads our files and we read its files", "[checkpoint]") {
  const auto python = test::python_with("numpy, safetensors.numpy");
  if (!python) return test::skip("no Python with numpy and safetensors");
  const test::TemporaryFolder folder;
  TensorFileWriter writer;
  writer.add("w", Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3}, Purpose::weights));
  writer.add_i64("n", {-5});
  writer.set_metadata("format", "pt");
  writer.write(folder / "ours");
  test::write_file(folder / "check.py",
                   "import sys, numpy as np\n"
                   "from safetensors import safe_open\n"
                   "from safetensors.numpy import save_file\n"
                   "with safe_open(sys.argv[1], 'np') as f:\n"
                   "    assert sorted(f.keys()) == ['n', 'w'], f.keys()\n"
                   "    assert f.metadata() == {'format': 'pt'}\n"
                   "    w = f.get_tensor('w')\n"
                   "    assert w.dtype == np.float32 and (w == np.arange(1, 7).reshape(2, 3)).all()\n"
                   "    assert f.get_tensor('n').tolist() == [-5]\n"
                   "save_file({'x': np.array([[1.5], [-2]], np.float32), 'h': np.array([0.1], np.float16),\n"
                   "           'e': np.zeros((0, 3), np.float32), 'u': np.array([7], np.uint64)},\n"
                   "          sys.argv[2], {'k': 'v'})\n");
  REQUIRE(test::run_python(*python, (folder / "check.py").string() + " " + (folder / "ours").string() + " " +
                                        (folder / "theirs").string()) == 0);
  const TensorFileReader file(folder / "theirs");
  REQUIRE(file.entries().size() == 4);
  const Tensor x = file.read_tensor("x", Purpose::weights);
  REQUIRE(x.shape() == std::vector<std::int64_t>{2, 1});
  REQUIRE(x.data()[0] == 1.5f);
  REQUIRE(x.data()[1] == -2);
  REQUIRE(std::abs(file.read_tensor("h", Purpose::weights).data()[0] - 0.1f) < 1e-4f);
  REQUIRE(file.read_u64("u") == std::vector<std::uint64_t>{7});
  REQUIRE(file.metadata().at("k") == "v");
}
