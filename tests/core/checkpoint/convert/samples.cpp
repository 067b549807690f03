#include "tests/core/checkpoint/convert/samples.h"

#include <cstring>

#include "tests/support/gzip.h"

namespace etc::test {

namespace {

template <typename T>
std::string little_endian(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string word(std::size_t value) {
  return little_endian(static_cast<std::uint16_t>(value));
}

std::string quad(std::size_t value) {
  return little_endian(static_cast<std::uint32_t>(value));
}

std::int64_t element_bytes(const std::string& type) {
  if (type == "ByteStorage" || type == "BoolStorage") return 1;
  if (type == "HalfStorage" || type == "BFloat16Storage") return 2;
  return type == "LongStorage" || type == "DoubleStorage" ? 8 : 4;
}

}  // namespace

Numbers read_all(const convert::TensorSource& source) {
  Numbers numbers;
  for (const auto& [name, tensor] : source.tensors()) {
    if (tensor.dtype == StoredDtype::i64 || tensor.dtype == StoredDtype::i32) {
      numbers.integers[name] = source.read_integers(name);
    } else if (tensor.dtype && is_readable_float(*tensor.dtype)) {
      numbers.floats[name].resize(static_cast<std::size_t>(tensor.count()));
      source.read_floats(name, numbers.floats[name].data());
    } else if (tensor.dtype) {
      std::string bytes(tensor.bytes(), '\0');
      source.read_raw(name, bytes.data());
    }
  }
  return numbers;
}

std::string zip_file(const std::vector<ZipItem>& items) {
  std::string file, directory;
  for (const ZipItem& item : items) {
    // A gzip file is ten bytes, the deflated data, the CRC-32 and the size.
    const std::string packed = gzip(item.bytes);
    const std::string crc = packed.substr(packed.size() - 8, 4);
    const std::string data = item.deflate ? packed.substr(10, packed.size() - 18) : item.bytes;
    const std::string sizes = crc + quad(data.size()) + quad(item.bytes.size());
    const std::string method = word(item.deflate ? 8 : 0);
    directory += "PK\x01\x02" + word(20) + word(20) + word(0) + method + word(0) + word(0) + sizes +
                 word(item.name.size()) + word(0) + word(0) + word(0) + word(0) + quad(0) + quad(file.size()) +
                 item.name;
    file += "PK\x03\x04" + word(20) + word(0) + method + word(0) + word(0) + sizes + word(item.name.size()) + word(0) +
            item.name + data;
  }
  const std::string end = "PK\x05\x06" + word(0) + word(0) + word(items.size()) + word(items.size()) +
                          quad(directory.size()) + quad(file.size()) + word(0);
  return file + directory + end;
}

namespace pickle {

std::string text(std::string_view value) {
  return "X" + quad(value.size()) + std::string(value);
}

std::string integer(std::int64_t value) {
  if (value >= 0 && value < 256) return "K" + std::string(1, static_cast<char>(value));
  if (value >= 0 && value < 65536) return "M" + word(static_cast<std::size_t>(value));
  return "\x8a\x08" + little_endian(value);
}

std::string tuple(const std::vector<std::string>& items) {
  std::string bytes = "(";
  for (const std::string& item : items) bytes += item;
  return bytes + "t";
}

std::string list(const std::vector<std::string>& items) {
  std::string bytes = "](";
  for (const std::string& item : items) bytes += item;
  return bytes + "e";
}

std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

std::string call(const std::string& callee, const std::vector<std::string>& arguments) {
  return callee + tuple(arguments) + "R";
}

std::string dictionary(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string bytes = call(global("collections", "OrderedDict"), {}) + "(";
  for (const auto& [key, value] : entries) bytes += text(key) + value;
  return bytes + "u";
}

std::string storage(const std::string& type, const std::string& key, std::int64_t elements) {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), integer(elements)}) + "Q";
}

std::string tensor(const std::string& of, std::int64_t offset, const std::vector<std::int64_t>& sizes,
                   const std::vector<std::int64_t>& strides) {
  const auto numbers = [](const std::vector<std::int64_t>& values) {
    std::vector<std::string> items;
    for (const std::int64_t value : values) items.push_back(integer(value));
    return tuple(items);
  };
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              {of, integer(offset), numbers(sizes), numbers(strides), "\x89", dictionary({})});
}

std::string program(const std::string& value) {
  return "\x80\x02" + value + ".";
}

}  // namespace pickle

std::string state_dictionary(const std::vector<TorchTensor>& tensors) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TorchTensor& one = tensors[i];
    std::vector<std::int64_t> strides(one.shape.size(), 1);
    for (std::size_t axis = strides.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * one.shape[axis];
    const auto elements = static_cast<std::int64_t>(one.bytes.size()) / element_bytes(one.type);
    const std::string storage = pickle::storage(one.type, std::to_string(i), elements);
    entries.emplace_back(one.name, pickle::tensor(storage, 0, one.shape, strides));
  }
  return pickle::program(pickle::dictionary(entries));
}

std::string torch_zip(const std::string& program, const std::vector<std::string>& storages, bool deflate) {
  std::vector<ZipItem> items = {{"archive/data.pkl", program, deflate}, {"archive/version", "3\n", false}};
  for (std::size_t i = 0; i < storages.size(); ++i) {
    items.push_back({"archive/data/" + std::to_string(i), storages[i], deflate});
  }
  return zip_file(items);
}

std::string torch_stream(const std::string& program,
                         const std::vector<std::pair<std::int64_t, std::string>>& storages) {
  std::vector<std::string> keys;
  std::string data;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    keys.push_back(pickle::text(std::to_string(i)));
    data += little_endian(storages[i].first) + storages[i].second;
  }
  const std::string magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", 15);
  const std::string writer =
      pickle::dictionary({{"protocol_version", pickle::integer(1001)}, {"little_endian", "\x88"}});
  return magic + pickle::program(pickle::integer(1001)) + pickle::program(writer) + program +
         pickle::program(pickle::list(keys)) + data;
}

std::string torch_zip(const std::vector<TorchTensor>& tensors, bool deflate) {
  std::vector<std::string> storages;
  for (const TorchTensor& one : tensors) storages.push_back(one.bytes);
  return torch_zip(state_dictionary(tensors), storages, deflate);
}

std::string torch_stream(const std::vector<TorchTensor>& tensors) {
  std::vector<std::pair<std::int64_t, std::string>> storages;
  for (const TorchTensor& one : tensors) {
    storages.emplace_back(static_cast<std::int64_t>(one.bytes.size()) / element_bytes(one.type), one.bytes);
  }
  return torch_stream(state_dictionary(tensors), storages);
}

}  // namespace etc::test
