// Python's pickle format, as far as the state dictionaries of PyTorch use it.
//
// A pickle is a program for a stack machine that can call anything in Python. This machine calls nothing: it supports
// the operations that build plain data (protocol 2), and only the global names below, each of which stands for data.
// Everything else is refused, naming it.
//   collections.OrderedDict            an ordinary dictionary
//   torch.<Type>Storage                a type of numbers
//   torch._utils._rebuild_tensor_v2    a view of a storage: storage, offset, sizes, strides
//   torch._utils._rebuild_parameter    its first argument, a tensor
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/checkpoint/tensor_file.h"

namespace etc::convert {

// The location of a tensor's numbers: `view_offset` and strides count elements, `storage` is the storage's key.
struct TensorView {
  StoredDtype dtype = StoredDtype::f32;
  std::string storage;
  std::int64_t storage_size = 0;    // elements
  std::int64_t storage_offset = 0;  // of the storage itself in a larger one (older files; mostly 0)
  std::int64_t view_offset = 0;
  std::vector<std::int64_t> shape, strides;
};

inline constexpr std::size_t kMaxPickleBytes = 4 << 20;

// One value; the value of a real number is not kept, because it is not needed. Containers hold other values by pointer;
// the machine owns all values, so cyclic references are harmless.
struct PickleValue {
  enum class Kind { none, boolean, integer, real, text, tuple, list, dictionary, global, storage, tensor };
  Kind kind = Kind::none;
  std::int64_t integer = 0;               // boolean, integer
  std::string text;                       // text, global ("module.name")
  std::vector<const PickleValue*> items;  // tuple, list; dictionary: key, value, key, value, …
  std::unique_ptr<TensorView> view;       // storage (without shape and strides), tensor
};

class PickleMachine {
 public:
  // Runs one pickle at the front of `bytes`. The result lives as long as the machine.
  // Rules: at most 4 MB of program and 500,000 values (a tensor needs about 150 bytes and 15 values), 4,000,000 items
  // of lists and dictionaries, and 64 MB of storages' names and tensors' sizes. Throws Error
  //   "<where>: …" naming operation or global, and the byte.
  const PickleValue& run(std::string_view bytes, const std::string& where);

  // The number of bytes of the last pickle.
  std::size_t consumed() const { return consumed_; }

 private:
  class Program;
  std::deque<PickleValue> values_;
  std::size_t consumed_ = 0;
};

const char* pickle_kind_name(PickleValue::Kind kind);

}  // namespace etc::convert
