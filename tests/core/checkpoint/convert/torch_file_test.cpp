#include "etc_core/checkpoint/convert/pickle/torch_file.h"

#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/checkpoint/convert/pickle/zip_archive.h"
#include "tests/core/checkpoint/convert/samples.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"
#include "tests/support/numbers.h"
#include "tests/support/python.h"

using namespace etc;
using namespace etc::convert;
using namespace etc::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

std::vector<TorchTensor> example_tensors() {
  return {{"layer.weight", "FloatStorage", {2, 3}, bytes_of<float>({1, -2, 3.5f, 0, 1e-40f, 6})},
          {"half", "HalfStorage", {2}, bytes_of<std::uint16_t>({0x3c00, 0xc000})},
          {"brain", "BFloat16Storage", {2}, bytes_of<std::uint16_t>({0x3f80, 0xc000})},
          {"position_ids", "LongStorage", {1, 3}, bytes_of<std::int64_t>({0, 1, 2})},
          {"empty", "FloatStorage", {0, 4}, ""},
          {"scalar", "FloatStorage", {}, bytes_of<float>({7})},
          {"mask", "BoolStorage", {2}, std::string("\1\0", 2)}};
}

void check_example(const TorchFile& file) {
  const Numbers numbers = read_all(file);
  REQUIRE(file.tensors().size() == 7);
  REQUIRE(file.at("layer.weight").shape == std::vector<std::int64_t>{2, 3});
  REQUIRE(numbers.floats.at("layer.weight") == std::vector<float>{1, -2, 3.5f, 0, 1e-40f, 6});
  REQUIRE(numbers.floats.at("half") == std::vector<float>{1, -2});
  REQUIRE(numbers.floats.at("brain") == std::vector<float>{1, -2});
  REQUIRE(numbers.floats.at("empty").empty());
  REQUIRE(numbers.floats.at("scalar") == std::vector<float>{7});
  REQUIRE(numbers.integers.at("position_ids") == std::vector<std::int64_t>{0, 1, 2});
  REQUIRE(file.at("mask").text() == "BOOL [2]");
}

// Writes a zip file with a program for this value and one storage of six floats.
fs::path write_value(const TemporaryFolder& folder, const std::string& value) {
  test::write_file(folder / "a.bin", torch_zip(pickle::program(value), {bytes_of<float>({0, 1, 2, 3, 4, 5})}));
  return folder / "a.bin";
}

std::string view(std::int64_t offset, const std::vector<std::int64_t>& sizes,
                 const std::vector<std::int64_t>& strides) {
  return pickle::dictionary({{"w", pickle::tensor(pickle::storage("FloatStorage", "0", 6), offset, sizes, strides)}});
}

}  // namespace

TEST_CASE("a PyTorch state dictionary is read from both forms of file, stored and deflated", "[convert]") {
  const TemporaryFolder folder;
  for (const std::string& bytes :
       {torch_zip(example_tensors()), torch_zip(example_tensors(), true), torch_stream(example_tensors())}) {
    test::write_file(folder / "pytorch_model.bin", bytes);
    check_example(TorchFile(folder / "pytorch_model.bin"));
    REQUIRE(open_tensors(folder.path())->tensors().size() == 7);
  }
}

TEST_CASE("views of a storage are read in their own order", "[convert]") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& value) {
    return read_all(TorchFile(write_value(folder, value))).floats.at("w");
  };
  REQUIRE(read(view(0, {2, 3}, {3, 1})) == std::vector<float>{0, 1, 2, 3, 4, 5});
  REQUIRE(read(view(0, {3, 2}, {1, 3})) == std::vector<float>{0, 3, 1, 4, 2, 5});  // transposed
  REQUIRE(read(view(1, {2, 2}, {3, 1})) == std::vector<float>{1, 2, 4, 5});        // columns
  REQUIRE(read(view(4, {2}, {1})) == std::vector<float>{4, 5});
  REQUIRE(read(view(0, {3}, {2})) == std::vector<float>{0, 2, 4});
  REQUIRE(read(view(5, {1, 1}, {77, 99})) == std::vector<float>{5});
  REQUIRE(read(view(2, {3}, {0})) == std::vector<float>{2, 2, 2});  // expanded, but within the storage's size
}

TEST_CASE("two tensors may share a storage, in both forms of file", "[convert]") {
  const TemporaryFolder folder;
  const std::string storage = pickle::storage("FloatStorage", "0", 3);
  const std::string program = pickle::program(pickle::dictionary(
      {{"tied", pickle::tensor(storage, 0, {3}, {1})}, {"tail", pickle::tensor(storage, 1, {2}, {1})}}));
  const std::string data = bytes_of<float>({7, 8, 9});
  for (const std::string& bytes :
       {torch_zip(program, {data}), torch_zip(program, {data}, true), torch_stream(program, {{3, data}})}) {
    test::write_file(folder / "a.bin", bytes);
    const Numbers numbers = read_all(TorchFile(folder / "a.bin"));
    REQUIRE(numbers.floats.at("tied") == std::vector<float>{7, 8, 9});
    REQUIRE(numbers.floats.at("tail") == std::vector<float>{8, 9});
  }
}

TEST_CASE("a pickle can run nothing: every other name and operation is refused by its name", "[convert]") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& value, const std::string& message) {
    REQUIRE_THROWS_WITH(TorchFile(write_value(folder, value)), Contains("a.bin: pickle: byte ") && Contains(message));
  };
  const fs::path trace = folder / "run";
  const std::string command = pickle::text("touch " + trace.string());
  refuses(pickle::call(pickle::global("os", "system"), {command}),
          "os.system is not a name that weights need: refused");
  refuses(pickle::call(pickle::global("builtins", "eval"), {command}), "builtins.eval is not a name");
  refuses(pickle::call(pickle::global("torch", "load"), {command}), "torch.load is not a name");
  refuses(pickle::call(pickle::global("torch", "FloatTensor"), {}), "torch.FloatTensor is not a name");
  refuses(pickle::call(pickle::global("collections", "OrderedDict.fromkeys"), {}),
          "OrderedDict.fromkeys is not a name");
  refuses(pickle::call(pickle::global("torch", "FloatStorage"), {}), "a call of torch.FloatStorage");
  refuses("(ios\nsystem\n", "operation 0x69 is not one that weights need: refused");  // INST
  refuses(command + "(" + command + "o", "operation 0x6f");                           // OBJ
  refuses(pickle::global("collections", "OrderedDict") + ")\x81", "operation 0x81");  // NEWOBJ
  refuses("\x82\x01", "operation 0x82");                                              // EXT1
  refuses("\x8c\x02os\x8c\x06system\x93", "operation 0x8c");                          // STACK_GLOBAL
  refuses("P0\n", "operation 0x50");                                                  // PERSID
  refuses("\x95" + std::string(8, '\0'), "operation 0x95");                           // FRAME
  REQUIRE(!fs::exists(trace));
}

TEST_CASE("a pickle that is no program is refused with the place", "[convert]") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& value, const std::string& message) {
    REQUIRE_THROWS_WITH(TorchFile(write_value(folder, value)), Contains(message));
  };
  refuses("t", "no mark on the stack");
  refuses("", "the stack is empty");
  refuses("\x85", "the stack is empty");
  refuses("NNs", "the stack is empty");
  refuses("NN(s", "the stack is empty");  // values below a mark cannot be popped
  refuses("h\x05", "nothing remembered under 5");
  refuses("NK\1a", "items for None: expected a list");
  refuses("}(K\1u", "a key without a value");
  refuses("X\xff\xff\xff\xff", "it ends too early");
  refuses("ctorch", "a name without an end");
  refuses("\x8a\x09" + std::string(9, '\1'), "an integer of 9 bytes");
  refuses("NNR", "a call of None with None");
  refuses("N}b", "attributes for None");
  refuses("NQ", "expected a storage");
  refuses(pickle::call(pickle::global("torch._utils", "_rebuild_tensor_v2"), {}), "argument 0 is missing");
  refuses(pickle::call(pickle::global("torch._utils", "_rebuild_tensor_v2"), {pickle::integer(1)}),
          "argument 0: expected a storage, got an integer");
  refuses(view(0, {2, 3}, {1}), "a tensor with 2 sizes and 1 strides");
  refuses(view(-1, {1}, {1}), "argument 1: expected a number >= 0, got -1");
  refuses(view(0, std::vector<std::int64_t>(65, 1), std::vector<std::int64_t>(65, 1)), "at most 64 dimensions");
  refuses(std::string(500'001, 'N'), "more than 500000 values");
  refuses(std::string(5 << 20, '('), "longer than 4194304 bytes");
  test::write_file(folder / "b.bin", torch_zip("\x80\x04N.", {}));
  REQUIRE_THROWS_WITH(TorchFile(folder / "b.bin"), Contains("protocol 4: expected 2"));
  test::write_file(folder / "b.bin", torch_zip("hello", {}));
  REQUIRE_THROWS_WITH(TorchFile(folder / "b.bin"), Contains("not a pickle"));
}

TEST_CASE("a state dictionary that does not fit its file is refused, naming the tensor", "[convert]") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& value, const std::string& message) {
    REQUIRE_THROWS_WITH(TorchFile(write_value(folder, value)), Contains("a.bin: ") && Contains(message));
  };
  refuses(view(1, {2, 3}, {3, 1}), "w: [2, 3] with strides [3, 1] from 1 on reaches beyond the 6 elements");
  refuses(view(std::int64_t{1} << 62, {1}, {1}), "reaches beyond");
  refuses(view(0, {2, 3}, {std::int64_t{1} << 62, 1}), "reaches beyond");
  refuses(view(0, {4, 4}, {0, 0}), "w: [4, 4] needs more elements than the 6 of its storage");
  refuses(view(0, {std::int64_t{1} << 40, std::int64_t{1} << 40}, {0, 0}), "needs more elements");
  refuses(view(0, {std::int64_t{1} << 40, std::int64_t{1} << 40, 0}, {0, 0, 0}), "needs more elements");
  refuses(pickle::dictionary({{"w", pickle::tensor(pickle::storage("FloatStorage", "0", 7), 0, {1}, {1})}}),
          "w: storage 0: expected 7 elements, the file has 24 bytes");
  refuses(pickle::dictionary({{"w", pickle::tensor(pickle::storage("FloatStorage", "x", 6), 0, {1}, {1})}}),
          "no storage x");
  refuses(pickle::dictionary({{"w", pickle::tensor(pickle::storage("FloatStorage", "../0", 6), 0, {1}, {1})}}),
          "no storage ../0");
  const std::string one = pickle::tensor(pickle::storage("FloatStorage", "0", 6), 0, {1}, {1});
  refuses(pickle::dictionary({{"w", one}, {"w", one}}), "w: comes twice");
  refuses(pickle::dictionary({{"w", pickle::integer(3)}}), "w: expected a tensor, got an integer");
  refuses(pickle::list({one}), "expected a dictionary of tensors, got a list");
}

TEST_CASE("a damaged zip file is refused with the reason", "[convert]") {
  const TemporaryFolder folder;
  const std::string good = torch_zip(example_tensors());
  const auto refuses = [&](const std::string& bytes, const std::string& message) {
    test::write_file(folder / "a.bin", bytes);
    REQUIRE_THROWS_WITH(read_all(TorchFile(folder / "a.bin")), Contains("a.bin: ") && Contains(message));
  };
  refuses(good.substr(0, good.size() - 1), "not a zip file, or cut off");
  refuses(good.substr(0, 40), "not a zip file, or cut off");
  refuses(zip_file({{"a/data.txt", "x"}}), "no data.pkl: not a PyTorch checkpoint");
  refuses(zip_file({{"a/data.pkl", "x"}, {"a/data.pkl", "y"}}), "a/data.pkl: comes twice");
  refuses(zip_file({{"a/data.pkl", "x"}, {"a/byteorder", "big"}}), "byteorder: expected little, got big");

  std::string bad = good;  // a bit of the first storage
  const std::size_t at = bad.find("archive/data/0") + 14;
  bad[at] ^= 1;
  refuses(bad, "archive/data/0: checksum: expected ");
  bad = good;
  const std::size_t entry = bad.find("PK\x01\x02");
  bad[entry + 8] = 1;
  refuses(bad, "is encrypted");
  bad = good;
  bad[entry + 10] = 12;
  refuses(bad, "compression 12: expected stored or deflated");
  bad = good;
  bad[entry + 20] ^= 1;
  refuses(bad, "is stored with ");
  bad = good;
  bad[entry + 42] ^= 1;
  refuses(bad, "no member at 1");
  bad = good;
  bad[entry + 46 + 15] ^= 1;  // only the name in the directory
  refuses(bad, "archive/data.pkm: has another name before its bytes than in the directory");
  // The second member lies inside the first one's data, including a local header with the second one's name.
  const std::string inner = zip_file({{"a/b", "x"}}).substr(0, 30 + 3 + 1);
  bad = zip_file({{"a/data.pkl", inner}, {"a/b", "x"}});
  bad.replace(bad.rfind("PK\x01\x02") + 42, 1, "\x28");  // 30 + 10: after the header of a/data.pkl
  refuses(bad, "a/b: overlaps a/data.pkl");
  bad = good;
  bad[bad.size() - 12] -= 1;  // the number of members
  refuses(bad, "bytes behind its 8 entries");
  bad = good;
  bad.replace(bad.size() - 6, 4, "\xff\xff\xff\x7f");
  refuses(bad, "the directory lies outside the file");
  bad = good;
  bad.replace(bad.size() - 12, 2, "\xff\xff");
  refuses(bad, "the directory is damaged at entry ");
  bad = good;
  bad.replace(entry + 20, 8, "\xff\xff\xff\x7f\xff\xff\xff\x7f", 8);  // 2 GB, stored
  refuses(bad, "data.pkl: lies outside the file (cut off?)");
  bad = good;
  bad.replace(entry + 20, 8, 8, '\xff');  // refers to a ZIP64 field, which is missing
  refuses(bad, "data.pkl: lies outside the file (cut off?)");

  // ZIP64: a locator before the end record, and the record to which it points.
  const std::size_t end = good.size() - 22;
  const auto locator = [](std::uint64_t record_at) {
    return std::string("PK\x06\x07\0\0\0\0", 8) + test::bytes_of<std::uint64_t>({record_at}) +
           std::string("\1\0\0\0", 4);
  };
  refuses(good.substr(0, end) + locator(0) + good.substr(end), "the ZIP64 record is damaged");
  refuses(good.substr(0, end) + locator(~std::uint64_t{0}) + good.substr(end), "the ZIP64 record is damaged");
  const auto record = [](std::uint64_t count, std::uint64_t size, std::uint64_t offset) {
    return std::string("PK\x06\x06", 4) + std::string(28, '\0') + test::bytes_of<std::uint64_t>({count, size, offset});
  };
  const std::uint64_t size = end - entry;
  refuses(good.substr(0, end) + record(1 << 20, size, entry) + locator(end) + good.substr(end),
          "expected at most 100000 members, got 1048576");
  refuses(good.substr(0, end) + record(9, std::uint64_t{1} << 40, entry) + locator(end) + good.substr(end),
          "expected at most 100000 members, got 9 in 1099511627776 bytes");
  refuses(good.substr(0, end) + record(9, size, ~std::uint64_t{0}) + locator(end) + good.substr(end),
          "the directory lies outside the file");
}

TEST_CASE("a zip file with ZIP64 fields is read, and refused where they are damaged", "[convert]") {
  const TemporaryFolder folder;
  // The directory entry of data.pkl with its sizes in a ZIP64 field.
  const std::string good = torch_zip(example_tensors());
  const std::size_t entry = good.find("PK\x01\x02"), name = std::string("archive/data.pkl").size();
  const std::string sizes = good.substr(entry + 20, 8);
  const auto with_field = [&](const std::string& field) {
    std::string file = good;
    file.insert(entry + 46 + name, field);
    file.replace(entry + 20, 8, 8, '\xff');
    file[entry + 30] = static_cast<char>(field.size());
    const std::size_t end = file.size() - 22;
    std::uint32_t size;
    std::memcpy(&size, file.data() + end + 12, 4);
    size += static_cast<std::uint32_t>(field.size());
    file.replace(end + 12, 4, bytes_of<std::uint32_t>({size}));
    test::write_file(folder / "a.bin", file);
    return folder / "a.bin";
  };
  const auto wide = [](const std::string& word) { return word + std::string(4, '\0'); };
  const std::string both = wide(sizes.substr(4)) + wide(sizes.substr(0, 4));  // first the size, then the stored size
  check_example(TorchFile(with_field(std::string("\1\0\x10\0", 4) + both)));
  check_example(TorchFile(with_field(std::string("\7\0\2\0ab\1\0\x10\0", 10) + both)));  // after another field
  REQUIRE_THROWS_WITH(TorchFile(with_field(std::string("\1\0\x08\0", 4) + both.substr(0, 8))),
                      Contains("archive/data.pkl: the ZIP64 field is too short"));
  REQUIRE_THROWS_WITH(TorchFile(with_field(std::string("\1\0\xff\xff", 4) + both)), Contains("lies outside the file"));
}

TEST_CASE("a zip bomb is refused before it is unpacked", "[convert]") {
  const TemporaryFolder folder;
  const std::string zeros(64 << 20, '\0');
  test::write_file(folder / "a.bin", zip_file({{"a/data.pkl", zeros, true}}));
  REQUIRE(fs::file_size(folder / "a.bin") < 100'000);
  REQUIRE_THROWS_WITH(TorchFile(folder / "a.bin"),
                      Contains("a/data.pkl: the members are more than 16 times as large as the file"));
  // A member with a declared size that is too small: inflating stops at the declared size.
  std::string liar = zip_file({{"a/data.pkl", zeros, true}});
  for (const std::size_t at : {std::size_t{22}, liar.find("PK\x01\x02") + 24})
    liar.replace(at, 4, std::string("\x10\0\0\0", 4));
  test::write_file(folder / "a.bin", liar);
  REQUIRE_THROWS_WITH(TorchFile(folder / "a.bin"), Contains("inflates to more than the 16 bytes it is said to have"));
  // A member with a declared size that is too large, and one whose data are not deflated.
  std::string boaster = zip_file({{"a/data.pkl", "abc", true}});
  boaster.replace(boaster.find("PK\x01\x02") + 24, 4, std::string("\0\0\x10\0", 4));
  test::write_file(folder / "a.bin", boaster);
  REQUIRE_THROWS_WITH(TorchFile(folder / "a.bin"), Contains("inflates to 3 bytes: expected 1048576"));
  std::string noise = zip_file({{"a/data.pkl", "abc", true}});
  noise[noise.find("data.pkl") + 8] = '\x07';  // a block type that does not exist
  test::write_file(folder / "a.bin", noise);
  REQUIRE_THROWS_WITH(TorchFile(folder / "a.bin"), Contains("not valid deflated data"));
}

TEST_CASE("a damaged stream of pickles is refused with the reason", "[convert]") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& bytes, const std::string& message) {
    test::write_file(folder / "a.bin", bytes);
    REQUIRE_THROWS_WITH(read_all(TorchFile(folder / "a.bin")), Contains("a.bin: ") && Contains(message));
  };
  const std::string program = state_dictionary({{"w", "FloatStorage", {1}, "abcd"}});
  refuses(torch_stream(program, {{2, "abcd"}}), "storage 0: 2 elements lie outside the file");
  refuses(torch_stream(program, {{-1, "abcd"}}), "lie outside the file");
  refuses(torch_stream(program, {}), "no storage 0");
  refuses(torch_stream(program, {{1, "abcd"}, {1, "abcd"}}), "a storage that no tensor uses");
  const std::string good = torch_stream(program, {{1, "abcd"}});
  refuses(good.substr(0, 14), "not a PyTorch checkpoint");
  refuses(good.substr(0, 30), "a name without an end");
  std::string bad = good;
  bad[bad.find("\x88")] = '\x89';
  refuses(bad, "expected numbers in little-endian order");
  bad = good;
  bad[18] = '\0';
  refuses(bad, "version of the file: expected 1001");
}

TEST_CASE("what is no checkpoint is refused, saying what was looked for", "[convert]") {
  const TemporaryFolder folder;
  REQUIRE_THROWS_WITH(open_tensors(folder.path()), Contains("expected model.safetensors, pytorch_model.bin or"));
  REQUIRE_THROWS_WITH(open_tensors(folder / "none"),
                      Contains("none: no such file or folder: expected a checkpoint file"));
  test::write_file(folder / "text", "hello, this is not a checkpoint");
  REQUIRE_THROWS_WITH(open_tensors(folder / "text"), Contains("text: header: expected at most"));
  test::write_file(folder / "a.index", "");
  test::write_file(folder / "b.index", "");
  REQUIRE_THROWS_WITH(open_tensors(folder.path()), Contains("several TensorFlow checkpoints (a.index, b.index"));
}

TEST_CASE("a genuine PyTorch file holds the tensors of its safetensors twin bit by bit", "[convert][golden]") {
  const auto data = real_data_folder();
  int compared = 0;
  if (data && fs::exists(*data / "checkpoints")) {
    for (const auto& entry : fs::directory_iterator(*data / "checkpoints")) {
      if (!fs::exists(entry.path() / "pytorch_model.bin") || !fs::exists(entry.path() / "model.safetensors")) continue;
      const auto torch = open_tensors(entry.path() / "pytorch_model.bin");
      const auto twin = open_tensors(entry.path() / "model.safetensors");
      REQUIRE(torch->tensors().size() == twin->tensors().size());
      const Numbers expected = read_all(*twin), got = read_all(*torch);
      for (const auto& [name, values] : expected.floats) {
        CAPTURE(name);
        REQUIRE(torch->at(name).shape == twin->at(name).shape);
        REQUIRE(same_bits(got.floats.at(name), values));
      }
      ++compared;
    }
  }
  if (compared == 0) skip("no PyTorch file with a safetensors twin");
}

TEST_CASE("files in PyTorch's layout written by Python's own pickle and zipfile are read", "[convert]") {
  const auto python = python_with("pickle, zipfile, struct");
  if (!python) return skip("no Python");
  const TemporaryFolder folder;
  // Modules and classes with PyTorch's names, since a pickle stores only the names.
  test::write_file(folder / "write.py", R"(
import collections, pickle, struct, sys, types, zipfile
torch, utils = types.ModuleType('torch'), types.ModuleType('torch._utils')
sys.modules.update({'torch': torch, 'torch._utils': utils})
class FloatStorage: pass
FloatStorage.__module__, torch.FloatStorage = 'torch', FloatStorage
def _rebuild_tensor_v2(*arguments): pass
_rebuild_tensor_v2.__module__, utils._rebuild_tensor_v2 = 'torch._utils', _rebuild_tensor_v2
class Storage:
    def __init__(self, key, numbers): self.key, self.numbers = key, numbers
class Tensor:
    def __init__(self, storage, sizes, strides): self.storage, self.sizes, self.strides = storage, sizes, strides
    def __reduce__(self):
        return _rebuild_tensor_v2, (self.storage, 0, self.sizes, self.strides, False, collections.OrderedDict())
class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if isinstance(value, Storage): return ('storage', FloatStorage, value.key, 'cpu', len(value.numbers))
state = collections.OrderedDict()
state['w'] = Tensor(Storage('0', [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), (3, 2), (1, 3))
for i in range(1, 300):
    state['b%d' % i] = Tensor(Storage(str(i), [float(i)]), (1,), (1,))
state._metadata = collections.OrderedDict([('', {'version': 1}), ('layer', {'version': 2})])
with zipfile.ZipFile(sys.argv[1], 'w', int(sys.argv[2])) as z:
    with z.open('model/data.pkl', 'w') as f: Pickler(f, 2).dump(state)
    with z.open('model/byteorder', 'w') as f: f.write(b'little')
    for t in state.values():
        with z.open('model/data/' + t.storage.key, 'w', force_zip64=True) as f:
            f.write(struct.pack('<%df' % len(t.storage.numbers), *t.storage.numbers))
)");
  for (const std::string method : {"0", "8"}) {  // stored, deflated
    const fs::path file = folder / ("a" + method);
    REQUIRE(run_python(*python, (folder / "write.py").string() + " " + file.string() + " " + method) == 0);
    const Numbers numbers = read_all(TorchFile(file));
    REQUIRE(numbers.floats.size() == 300);
    REQUIRE(numbers.floats.at("w") == std::vector<float>{1, 4, 2, 5, 3, 6});
    REQUIRE(numbers.floats.at("b299") == std::vector<float>{299});
  }
}

namespace {

// Mutants of whole files of every form, and of the program inside a valid zip file.
void read_torch_mutants(int count) {
  const TemporaryFolder folder;
  const fs::path bad = folder / "bad.bin";
  const std::string stored = torch_zip(example_tensors()), deflated = torch_zip(example_tensors(), true);
  const std::string stream = torch_stream(example_tensors()), program = state_dictionary(example_tensors());
  std::vector<std::string> storages;
  for (const TorchTensor& one : example_tensors()) storages.push_back(one.bytes);
  int refused = 0;
  for (int seed = 0; seed < count; ++seed) {
    const auto number = static_cast<std::uint64_t>(seed);
    for (const std::string& bytes : {mutate(stored, number), mutate(deflated, number), mutate(stream, number),
                                     torch_zip(mutate(program, number), storages)}) {
      test::write_file(bad, bytes);
      try {
        const TorchFile file(bad);
        for (const auto& [name, tensor] : file.tensors()) REQUIRE(tensor.bytes() <= 16 * bytes.size() + (16 << 20));
        read_all(file);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > count);
}

}  // namespace

TEST_CASE("mutants of a PyTorch file are read or refused, never crash", "[convert]") {
  read_torch_mutants(200);
}

TEST_CASE("many mutants of a PyTorch file are read or refused, never crash", "[convert][slow]") {
  read_torch_mutants(5000);
}
