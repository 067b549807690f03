#include "etc_core/checkpoint/convert/memory_source.h"

#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/shape.h"
#include "etc_core/base/words.h"
#include "etc_core/checkpoint/convert/config_check.h"
#include "etc_core/checkpoint/model_files.h"

namespace etc::convert {

namespace {

const std::map<std::string, StoredDtype>& array_types() {
  static const std::map<std::string, StoredDtype> kTypes = {
      {"float64", StoredDtype::f64},   {"float32", StoredDtype::f32}, {"float16", StoredDtype::f16},
      {"bfloat16", StoredDtype::bf16}, {"int64", StoredDtype::i64},   {"int32", StoredDtype::i32},
      {"int16", StoredDtype::i16},     {"int8", StoredDtype::i8},     {"uint64", StoredDtype::u64},
      {"uint32", StoredDtype::u32},    {"uint16", StoredDtype::u16},  {"uint8", StoredDtype::u8},
      {"bool", StoredDtype::boolean}};
  return kTypes;
}

StoredDtype array_type(const MemoryTensor& tensor, const std::string& where) {
  const auto found = array_types().find(tensor.type);
  if (found != array_types().end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, type] : array_types()) names.push_back(name);
  fail_usage(where, "{}: type {}: expected {}{}", tensor.name, tensor.type, alternatives(names),
             suggestion(tensor.type, names));
}

}  // namespace

MemorySource::MemorySource(const std::vector<MemoryTensor>& tensors, std::string where) : where_(std::move(where)) {
  for (const MemoryTensor& tensor : tensors) {
    const StoredDtype type = array_type(tensor, where_);
    const auto bytes = bytes_of(type, tensor.shape);
    if (!bytes)
      fail_usage(where_, "{}: shape {}: expected sizes of an array in memory", tensor.name, shape_text(tensor.shape));
    if (*bytes > 0 && tensor.data == nullptr)
      fail_usage(where_, "{}: expected a pointer to its numbers, got null", tensor.name);
    if (!tensors_.emplace(tensor.name, SourceTensor{type, tensor.shape}).second)
      fail_usage(where_, "{}: expected each name once, got it twice", tensor.name);
    data_[tensor.name] = tensor.data;
  }
}

void MemorySource::read_blocks(std::string_view name, void* out, const BytesRead& seen) const {
  const std::uint64_t bytes = at(name).bytes();
  const char* const from = static_cast<const char*>(data_.find(name)->second);
  for (std::uint64_t begin = 0; begin < bytes; begin += kReadBlock) {
    const std::uint64_t count = std::min(kReadBlock, bytes - begin);
    char* const to = static_cast<char*>(out) + begin;
    std::memcpy(to, from + begin, count);
    if (seen) seen(to, count);
  }
}

void read_own(const TensorSource& source, ParameterSet& parameters) {
  std::vector<std::string> faults;
  std::map<std::string, std::string> stored;  // by the parameter's name
  for (const auto& [name, tensor] : source.tensors()) {
    const std::string own = model_name(name);
    if (parameters.find(own) != nullptr) {
      stored[own] = name;
    } else if (is_encoder_tensor(name)) {
      faults.push_back(fmt::format("{} {} unused", name, tensor.text()));
    }
  }
  std::vector<std::pair<Parameter*, std::string>> pairs;
  for (const auto& parameter : parameters.all()) {
    const auto found = stored.find(parameter->name);
    if (found == stored.end()) {
      faults.push_back(fmt::format("{} {} absent", parameter->name, shape_text(parameter->shape)));
      continue;
    }
    const SourceTensor& tensor = source.at(found->second);
    if (!tensor.matches(parameter->shape))
      faults.push_back(fmt::format("{}: {}", found->second, tensor.mismatch(parameter->shape)));
    pairs.emplace_back(parameter.get(), found->second);
  }
  if (!faults.empty()) fail(source.where(), "{} tensors unmatched: {}", faults.size(), fmt::join(faults, "; "));
  fill_parameters(source.where(), std::move(pairs), [&](const std::string& name, float* out, const NumbersRead& seen) {
    source.read_floats(name, out, seen);
  });
}

}  // namespace etc::convert
