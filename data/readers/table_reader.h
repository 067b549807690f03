// Reads tables: one record per row of a file of tab-separated lines or comma-separated values.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/byte_stream.h"
#include "data/readers/record_reader.h"
#include "data/readers/text_blocks.h"
#include "etc_core/base/not_copied.h"

namespace etc::data {

enum class TableForm {
  tabs,    // lines; only LF ends one, every CR is dropped, quotes are ordinary characters (GLUE's files)
  commas,  // RFC 4180: a field that begins with a quote may hold commas, line ends and doubled quotes
};

class TableReader : public RecordReader, NotCopied {
 public:
  static constexpr std::size_t kMaxRowBytes = std::size_t{1} << 24;

  // Whether the file's first row is its header; nullopt: the file is empty. May throw InputFault if the row is neither
  // header nor data, or if a header is required.
  using IsHeader = std::function<bool(std::optional<std::string_view> first_row, const TextPosition& place)>;

  TableReader(ByteStream& stream, TableForm form, IsHeader is_header);

  // The next row after the header. The record's text is the header without its line end, LF, and the row, so that a row
  // can be read by its columns' names (row_of, header_of); without a header it begins with LF. A byte-order mark before
  // the first row is skipped. Empty rows are records. Throws InputFault if the file is truncated or a row is longer
  // than kMaxRowBytes (an unclosed quote).
  bool next(RecordSlice& slice) override;

 private:
  bool take_row(std::string& row);

  TextBlocks blocks_;
  TableForm form_;
  IsHeader is_header_;
  std::string header_;
  std::string first_;  // a first row that is not a header
  TextPosition first_place_;
  bool started_ = false, has_first_ = false;
  std::int64_t index_ = 0;
};

// The two parts of a record's text.
std::string_view header_of(std::string_view text);  // "": none
std::string_view row_of(std::string_view text);

// A row's fields. nullopt if a quoted field of a comma-separated row has text after its closing quote, or no closing
// quote.
std::optional<std::vector<std::string>> fields_of(std::string_view row, TableForm form);

}  // namespace etc::data
