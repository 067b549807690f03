// One record's text → a JSON value (parsed by simdjson), with the irregularities that a task reports.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/readers/flat_list.h"
#include "data/readers/record_slicer.h"
#include "etc_core/base/json.h"

namespace etc::data {

// An irregularity in a text that is valid JSON.
struct JsonNote {
  enum class Kind {
    duplicate_key,       // the last value was taken
    unpaired_surrogate,  // an escape like \ud800 alone; the value has U+FFFD instead
    // A number beyond 64 bits or a double's range, in a member that is read (UnreadMembers). The record's value is then
    // null; `field` is the member of the record that holds the number.
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
  ~JsonRecord();  // allocates no memory, so that a record can be destroyed after a bad_alloc

  std::int64_t index = 0;
  TextPosition begin;
  Json value;  // containers below level kMaxDepth are left empty: no task reads them
  // Members of the record that were read by columns; in the value each of them is an empty list.
  std::map<std::string, FlatList, std::less<>> columns;
  std::vector<JsonNote> notes;
};

inline constexpr int kMaxDepth = 64;

// The members of a record that a task does not read.
struct UnreadMembers {
  using Names = std::vector<std::pair<std::string, std::string>>;

  UnreadMembers() = default;
  UnreadMembers(std::initializer_list<Names::value_type> left_out_, std::vector<std::string> read_ = {})
      : left_out(left_out_), read(std::move(read_)) {}

  // Need not be built: of the record ("document_html", ""), or of the objects of a list that is a member of the record
  // ("document_tokens", "start_byte").
  Names left_out;
  // The members that are read, by their places ("answer", "question.id"); empty: all. Outside of them a number may be
  // out of range: the value has null in its place.
  std::vector<std::string> read;

  bool reads(std::string_view field) const;  // field: as in JsonNote
};

// Parses a slice; every key of every object (down to kMaxDepth) is visited. Unread members are left out of the value.
// Lists named in `flat` are read by columns if they have the form that flat_list.h requires (apart from unread
// members); other lists are in the value. Throws InputFault with the place of the fault when the text is not UTF-8 or
// not JSON; NaN and Infinity are not JSON. For a last line without a line end whose JSON is incomplete, cut_short is
// set first: the file is truncated there. Throws std::bad_alloc when memory does not suffice.
// Thread-safe. Cost: one pass, plus copies of the strings; memory a small multiple of the slice.
JsonRecord parse_record(RecordSlice& slice, const UnreadMembers& unread = {}, const FlatLists& flat = {});

// The complete value of one record, with no member left out or read by columns, and null for numbers out of range; the
// slice is unchanged. Throws like parse_record.
Json value_of(const RecordSlice& slice);

}  // namespace etc::data
