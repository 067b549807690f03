#include "tasks/glue/row.h"

#include <algorithm>
#include <charconv>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"
#include "tasks/text/json_field.h"

namespace etc::glue {

namespace {

using Fields = std::vector<std::string>;

constexpr double kLargestScore = 5;

// The columns of a row's parts.
struct Columns {
  std::size_t text_a = 0;
  std::optional<std::size_t> text_b, label;
  bool label_is_last = false;
  std::size_t count = 0;  // minimum number of columns
};

std::optional<std::size_t> column(const Fields& header, std::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (name.empty() || found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

// The columns, if the header has those of the data set's texts; otherwise nullopt.
std::optional<Columns> columns_of(std::string_view header, const DataSetInfo& info) {
  const Fields names = *data::fields_of(header, data::TableForm::tabs);
  const auto text_a = column(names, info.text_a), text_b = column(names, info.text_b);
  if (!text_a || (info.text_b[0] != '\0' && !text_b)) return std::nullopt;
  Columns columns{*text_a, text_b, column(names, info.label), info.label_is_last, 0};
  columns.count = 1 + std::max({*text_a, text_b.value_or(0), columns.label.value_or(0)});
  return columns;
}

// Source, label, mark, sentence.
constexpr Columns kHeaderlessCola{3, std::nullopt, 1, false, 4};
// Sentence, sentence, score.
constexpr Columns kRawStsb{0, 1, 2, false, 3};

// nullopt: the header lacks a column of the data set's texts.
std::optional<Columns> columns_of(const data::RecordSlice& record, const RowForm& form) {
  if (form.form == data::TableForm::commas) return kRawStsb;
  const std::string_view header = data::header_of(record.text);
  return header.empty() ? kHeaderlessCola : columns_of(header, info_of(form.set));
}

void read_label(const std::string& text, const std::string& line, const RowForm& form, prepare::FaultList& faults,
                Row& row) {
  const DataSetInfo& info = info_of(form.set);
  const auto refuse = [&](const char* code, const std::string& what) {
    if (form.labels_required) faults.reject("label", code, line + what);
  };
  if (!info.regression()) {
    const auto found = std::find(info.labels.begin(), info.labels.end(), text);
    if (found != info.labels.end()) {
      row.label = found - info.labels.begin();
    } else {
      refuse("label_unknown",
             fmt::format("expected one of {}, got {}", fmt::join(info.labels, ", "), prepare::quoted(text)));
    }
    return;
  }
  std::string_view digits = data::strip(text);  // as Python's float(), which the reference calls
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double score = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), score);
  const bool number = error == std::errc() && end == digits.data() + digits.size();
  if (number && score >= 0 && score <= kLargestScore) {
    row.score = score;
  } else {
    refuse("score_range", fmt::format("expected a number from 0 to 5, got {}", prepare::quoted(text)));
  }
}

}  // namespace

std::unique_ptr<data::RecordReader> open_rows(data::ByteStream& stream, const RowForm& form) {
  const auto is_header = [form](std::optional<std::string_view> first, const data::TextPosition& place) {
    if (form.form == data::TableForm::commas) return false;
    const DataSetInfo& info = info_of(form.set);
    const auto columns = first ? columns_of(*first, info) : std::nullopt;
    const bool headerless = form.set == DataSet::cola;
    if (!columns && headerless) return false;
    if (columns && (columns->label || !form.labels_required)) return true;
    throw data::InputFault(
        "header_unexpected", place,
        fmt::format("expected a header with the columns {}{}{}{}, got {}", info.text_a,
                    info.text_b[0] == '\0' ? "" : ", ", info.text_b,
                    form.labels_required ? fmt::format(", {} (--split test for files without labels)", info.label) : "",
                    first ? prepare::quoted(*first) : "nothing: the file is empty"));
  };
  return std::make_unique<data::TableReader>(stream, form.form, is_header);
}

std::string row_text_of(const Json& record, const RowForm& form, const std::string& what) {
  const DataSetInfo& info = info_of(form.set);
  const bool pair = info.text_b[0] != '\0';
  const text::JsonField object(record, what);
  if (!record.is_object() || !record.contains(info.text_a) || (pair && !record.contains(info.text_b))) {
    object.fail(fmt::format("expected an object with the texts of {}, {{\"{}\": …{}}}, got {}", info.name, info.text_a,
                            pair ? fmt::format(", \"{}\": …", info.text_b) : "",
                            shortened(text::one_line(record), 80)));
  }
  const auto field = [&](const char* name) {
    std::string value = object.member(name).string();
    std::replace_if(
        value.begin(), value.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
    if (form.form == data::TableForm::tabs) return value;
    for (std::size_t at = 0; (at = value.find('"', at)) != std::string::npos; at += 2) value.insert(at, 1, '"');
    return "\"" + value + "\"";
  };
  if (form.form == data::TableForm::commas) return "\n" + field(info.text_a) + "," + field(info.text_b) + ",";
  const std::string id = record.contains("id") && record["id"].is_string() ? field("id") : "0";
  std::string header = fmt::format("id\t{}", info.text_a), row = fmt::format("{}\t{}", id, field(info.text_a));
  if (pair) header += fmt::format("\t{}", info.text_b), row += "\t" + field(info.text_b);
  return header + "\n" + row;
}

Row read_row(const data::RecordSlice& record, const RowForm& form, prepare::FaultList& faults) {
  Row row;
  const bool has_header = !data::header_of(record.text).empty();
  row.id = std::to_string(record.index + (has_header ? 1 : 0));
  const std::string line = fmt::format("line {}: ", record.begin.line);
  const std::string_view text = data::row_of(record.text);
  if (data::invalid_utf8(text)) {
    faults.reject("row", "utf8_invalid", line + "not well-formed UTF-8");
    return row;
  }
  const auto fields = data::fields_of(text, form.form);
  if (!fields) {
    faults.reject("row", "csv_quote",
                  line + "expected a quoted field to end with a quote before a comma or the row's end");
    return row;
  }
  const std::optional<Columns> found = columns_of(record, form);
  if (!found) {
    faults.reject("row", "header_unexpected", line + "the header lacks a column of the data set's texts");
    return row;
  }
  const Columns& columns = *found;
  const bool exact = form.form == data::TableForm::commas;
  if (fields->size() < columns.count || (exact && fields->size() > columns.count)) {
    const std::string message = fmt::format("{}expected {}{} columns, got {}: {}", line, exact ? "" : "at least ",
                                            columns.count, fields->size(), prepare::quoted(text));
    form.set == DataSet::qqp ? faults.drop("row", "row_short", message) : faults.reject("row", "row_short", message);
    return row;
  }
  if (info_of(form.set).id_is_first_column && has_header) row.id = fields->front();
  row.text_a = (*fields)[columns.text_a];
  if (columns.text_b) row.text_b = (*fields)[*columns.text_b];
  if (columns.label) {
    read_label(columns.label_is_last ? fields->back() : (*fields)[*columns.label], line, form, faults, row);
  }
  return row;
}

}  // namespace etc::glue
