// One record's text → a JSON value (simdjson behind this door), with what a task has to report about it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/readers/flat_list.h"
#include "data/readers/record_slicer.h"
#include "etc_core/base/json.h"

namespace etc::data {

// Something odd in a text that is JSON nevertheless.
struct JsonNote {
  enum class Kind {
    duplicate_key,       // the last value was taken
    unpaired_surrogate,  // an escape like \ud800 alone; the text holds U+FFFD in its place
    // A number beyond 64 bits or a double's range; the record's value is then null, the field its member that holds it.
    number_out_of_range
  };
  Kind kind;
  std::string field;  // "supports[2]", "annotations[0].kind"; empty: the record itself
};

struct JsonRecord {
  JsonRecord() = default;
  JsonRecord(const JsonRecord&) = default;
  JsonRecord(JsonRecord&&) = default;
  JsonRecord& operator=(const JsonRecord&) = default;
  JsonRecord& operator=(JsonRecord&&) = default;
  ~JsonRecord();  // takes no memory, so that a record can be given up when there is none left

  std::int64_t index = 0;
  TextPosition begin;
  Json value;  // containers below level kMaxDepth are left empty: no task looks there
  // Members of the record that were read by columns; the value has an empty list in the place of each.
  std::map<std::string, FlatList, std::less<>> columns;
  std::vector<JsonNote> notes;
};

inline constexpr int kMaxDepth = 64;

// Members that a task never reads, so that they need not be built: of the record ("document_html", ""), or of the
// objects of a list that is a member of the record ("document_tokens", "start_byte").
using UnreadMembers = std::vector<std::pair<std::string, std::string>>;

// Parses a slice; every key of every object (down to kMaxDepth) is visited. The value has no unread members. Those
// lists of `flat` that are as flat_list.h says, but for unread members, are read by columns; any other is in the value.
// Throws InputFault with the place of the fault when the text is not UTF-8 or not JSON; NaN and Infinity are not JSON.
// A last line without a line end that stops before its JSON is whole gets cut_short set first: the file was cut there.
// Throws std::bad_alloc when memory does not suffice.
// Thread-safe. Cost: one pass, plus copies of the strings; memory a small multiple of the slice.
JsonRecord parse_record(RecordSlice& slice, const UnreadMembers& unread = {}, const FlatLists& flat = {});

// The whole value of one record, without anything left out or put into columns; the slice stays as it is. Throws like
// parse_record.
Json value_of(const RecordSlice& slice);

}  // namespace etc::data
