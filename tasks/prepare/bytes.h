// Binary serialisation of values, for exchange between processes of the same program.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "data/dataset.h"
#include "etc_core/base/error.h"
#include "tasks/prepare/preparation.h"

namespace etc::prepare {

template <typename Value>
concept PlainValue = std::is_arithmetic_v<Value> || std::is_enum_v<Value>;

// Values are concatenated. Numbers are stored in native representation; values with a length are preceded by it.
class ByteWriter {
 public:
  template <PlainValue Number>
  void put(const Number& number) {
    append(&number, sizeof number);
  }
  void put(const std::string& words) {
    put(words.size());
    text_.append(words);
  }
  template <typename Value>
  void put(const std::vector<Value>& values) {
    put(values.size());
    if constexpr (PlainValue<Value>) {
      append(values.data(), values.size() * sizeof(Value));
    } else {
      for (const Value& value : values) put(value);
    }
  }
  void put(const data::Example& example) {
    put(example.size());
    for (const auto& [name, value] : example) {
      put(name);
      put(value.index());
      std::visit([this](const auto& held) { put(held); }, value);
    }
  }
  void put(const data::Fault& fault);
  void put(const FaultList& faults);

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  void append(const void* bytes, std::size_t size) {
    if (size > 0) text_.append(static_cast<const char*>(bytes), size);
  }

  std::string text_;
};

// Reads the same values in the same order. Throws Error on malformed bytes.
class ByteReader {
 public:
  explicit ByteReader(std::string_view text) : text_(text) {}

  template <PlainValue Number>
  void get(Number& number) {
    std::memcpy(&number, bytes(sizeof number).data(), sizeof number);
  }
  void get(std::string& words) { words = bytes(get<std::size_t>()); }
  template <typename Value>
  void get(std::vector<Value>& values) {
    const auto count = get<std::size_t>();
    if (count > text_.size()) fail_damaged();  // each takes at least a byte
    values.resize(count);
    if constexpr (PlainValue<Value>) {
      const std::string_view all = bytes(count * sizeof(Value));
      if (count > 0) std::memcpy(values.data(), all.data(), all.size());
    } else {
      for (Value& value : values) get(value);
    }
  }
  void get(data::Example& example) {
    for (auto count = get<std::size_t>(); count > 0; --count) {
      const auto name = get<std::string>();
      get_value(get<std::size_t>(), example[name]);
    }
  }
  void get(data::Fault& fault);
  void get(FaultList& faults);

  template <typename Value>
  Value get() {
    Value value{};
    get(value);
    return value;
  }

  bool at_end() const { return text_.empty(); }
  void require_end() const {
    if (!at_end()) fail_damaged();
  }

 private:
  [[noreturn]] static void fail_damaged() { fail("etc", "what another process sent cannot be read"); }

  std::string_view bytes(std::size_t count) {
    if (count > text_.size()) fail_damaged();
    const std::string_view found = text_.substr(0, count);
    text_.remove_prefix(count);
    return found;
  }

  // Reads the alternative with this index.
  template <std::size_t I = 0>
  void get_value(std::size_t index, data::FeatureValue& value) {
    if constexpr (I < std::variant_size_v<data::FeatureValue>) {
      if (index != I) return get_value<I + 1>(index, value);
      get(value.emplace<I>());
    } else {
      fail_damaged();
    }
  }

  std::string_view text_;
};

}  // namespace etc::prepare
