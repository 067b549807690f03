// Values of external JSON files (predictions, gold answers) together with their position, so that every error names
// file, id and field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "etc_core/base/json_fwd.h"

namespace etc::text {

// A value on one line, as in prediction files; invalid UTF-8 becomes U+FFFD.
std::string one_line(const Json& value);

// A view of a value; the JSON document must outlive it. All errors: Error "<where>: <path>: expected …, got …".
class JsonField {
 public:
  // where: the beginning of messages, "FILE" or "FILE: line 3: id X".
  JsonField(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  const Json& json() const { return *value_; }
  const std::string& where() const { return where_; }
  JsonField named(std::string where) const { return {value_, std::move(where), path_}; }  // with another `where`

  // Members of an object: a required one, or nullopt when absent or null.
  JsonField member(const std::string& key) const;
  std::optional<JsonField> optional_member(const std::string& key) const;

  std::size_t size() const;  // of an array
  JsonField element(std::size_t index) const;

  const std::string& string() const;
  std::int64_t integer() const;  // in 64 bits, signed
  double number() const;         // finite
  bool boolean() const;
  void require_object() const;

  // Throws the Error "<where>: <path>: <what>".
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_type(const std::string& expected) const;

 private:
  JsonField(const Json* value, std::string where, std::string path)
      : value_(value), where_(std::move(where)), path_(std::move(path)) {}
  JsonField child(const Json& value, const std::string& key) const;

  const Json* value_;
  std::string where_;
  std::string path_;  // "sp[3][1]"; empty: the value that the view started with
};

}  // namespace etc::text
