#include "tasks/prepare/converted_text.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "etc_core/base/error.h"

namespace etc::prepare {

namespace {

// Numbers as they lie in memory; of what has a length that comes first.
class Writer {
 public:
  template <typename Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void put(const Number& number) { text_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void put(const std::string& words) {
    put(words.size());
    text_.append(words);
  }
  template <typename Value>
  void put(const std::vector<Value>& values) {
    put(values.size());
    for (const Value& value : values) put(value);
  }
  void put(const data::Example& example) {
    put(example.size());
    for (const auto& [name, value] : example) {
      put(name);
      put(value.index());
      std::visit([this](const auto& held) { put(held); }, value);
    }
  }
  void put(const data::Fault& fault) {
    put(fault.file);
    put(fault.record_index);
    put(fault.byte_offset);
    put(fault.id);
    put(fault.field);
    put(fault.code);
    put(fault.severity);
    put(fault.message);
    put(fault.details);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <typename Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void get(Number& number) { std::memcpy(&number, bytes(sizeof number).data(), sizeof number); }
  void get(std::string& words) { words = bytes(get<std::size_t>()); }
  template <typename Value>
  void get(std::vector<Value>& values) {
    const auto count = get<std::size_t>();
    if (count > text_.size()) fail_damaged();  // each takes a byte at least
    values.resize(count);
    for (Value& value : values) get(value);
  }
  void get(data::Example& example) {
    for (auto count = get<std::size_t>(); count > 0; --count) {
      const auto name = get<std::string>();
      get_value(get<std::size_t>(), example[name]);
    }
  }
  void get(data::Fault& fault) {
    get(fault.file);
    get(fault.record_index);
    get(fault.byte_offset);
    get(fault.id);
    get(fault.field);
    get(fault.code);
    get(fault.severity);
    get(fault.message);
    get(fault.details);
  }
  template <typename Value>
  Value get() {
    Value value{};
    get(value);
    return value;
  }
  void require_end() const {
    if (!text_.empty()) fail_damaged();
  }

 private:
  [[noreturn]] static void fail_damaged() { fail("prepare", "a record of another process cannot be read"); }

  std::string_view bytes(std::size_t count) {
    if (count > text_.size()) fail_damaged();
    const std::string_view found = text_.substr(0, count);
    text_.remove_prefix(count);
    return found;
  }

  // The alternative of that number.
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

}  // namespace

std::string text_of(const Converted& converted) {
  Writer out;
  out.put(converted.id);
  out.put(converted.examples);
  out.put(converted.gold.has_value());
  if (converted.gold) out.put(*converted.gold);
  out.put(converted.reject_details);
  out.put(converted.faults.rows());
  out.put(converted.faults.quiet_rows());
  out.put(converted.faults.counted());
  return out.take();
}

Converted converted_of(std::string_view text) {
  Reader in(text);
  Converted converted;
  in.get(converted.id);
  in.get(converted.examples);
  if (in.get<bool>()) in.get(converted.gold.emplace());
  in.get(converted.reject_details);
  const auto rows = in.get<std::vector<data::Fault>>(), quiet_rows = in.get<std::vector<data::Fault>>();
  converted.faults = FaultList(rows, quiet_rows, in.get<std::vector<std::string>>());
  in.require_end();
  return converted;
}

}  // namespace etc::prepare
