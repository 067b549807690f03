// Small checkpoint files made by hand, valid or with the errors that a test needs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etc_core/checkpoint/convert/tensor_source.h"
#include "tests/support/folders.h"

namespace etc::test {

struct Numbers {
  std::map<std::string, std::vector<float>> floats;
  std::map<std::string, std::vector<std::int64_t>> integers;
};

// Reads every tensor of a source in the way its type allows.
Numbers read_all(const convert::TensorSource& source);

// ---- Zip files. ----
struct ZipItem {
  std::string name, bytes;
  bool deflate = false;
};
std::string zip_file(const std::vector<ZipItem>& items);

// ---- Pickles, as strings of operations. ----
namespace pickle {
std::string text(std::string_view text);
std::string integer(std::int64_t value);
std::string tuple(const std::vector<std::string>& items);
std::string list(const std::vector<std::string>& items);
std::string global(const std::string& module, const std::string& name);
std::string call(const std::string& callee, const std::vector<std::string>& arguments);
std::string dictionary(const std::vector<std::pair<std::string, std::string>>& entries);  // an OrderedDict
std::string storage(const std::string& type, const std::string& key, std::int64_t elements);
std::string tensor(const std::string& storage, std::int64_t offset, const std::vector<std::int64_t>& sizes,
                   const std::vector<std::int64_t>& strides);
std::string program(const std::string& value);
}  // namespace pickle

// ---- State dictionaries. ----
struct TorchTensor {
  std::string name, type;  // "FloatStorage", …
  std::vector<std::int64_t> shape;
  std::string bytes;
};

// Each tensor contiguous in a storage of its own; keys "0", "1", ….
std::string state_dictionary(const std::vector<TorchTensor>& tensors);  // the program
std::string torch_zip(const std::vector<TorchTensor>& tensors, bool deflate = false);
std::string torch_stream(const std::vector<TorchTensor>& tensors);

// The file for a given program (a pickled dictionary) and storages.
std::string torch_zip(const std::string& program, const std::vector<std::string>& storages, bool deflate = false);
std::string torch_stream(const std::string& program, const std::vector<std::pair<std::int64_t, std::string>>& storages);

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace etc::test
