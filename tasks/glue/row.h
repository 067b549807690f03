// One row of a GLUE file, original or raw release, read and checked, without a tokenizer (dense-transformer 4.1, 8).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/readers/table_reader.h"
#include "etc_core/base/json_fwd.h"
#include "tasks/glue/data_sets.h"
#include "tasks/prepare/preparation.h"

namespace etc::glue {

// The format of a file's rows. commas: the raw release of STS-B, two texts and a score without a header.
struct RowForm {
  DataSet set = DataSet::cola;
  data::TableForm form = data::TableForm::tabs;
  bool labels_required = true;
};

struct Row {
  std::string id;              // its first column, or its line number from 0 with the header counted
  std::string text_a, text_b;  // text_b "": none
  std::int64_t label = -1;     // class; -1: none, or a score
  std::optional<double> score;
};

// A reader of the rows. It throws InputFault "header_unexpected", showing the header, if a column of the data set is
// missing in it or the file is empty. (Of CoLA's files only the test file has a header.)
std::unique_ptr<data::RecordReader> open_rows(data::ByteStream& stream, const RowForm& form);

// The text of a record (TableReader) with the texts of a JSON object whose members are named as the columns of the data
// set; "id" is optional. Tabs and line ends, which a row cannot hold, become blanks. Throws Error beginning with `what`.
std::string row_text_of(const Json& record, const RowForm& form, const std::string& what);

// Reads a row and reports its faults with its line. Too few columns: reject (QQP: drop, as the reference skips these rows).
// An unknown label or invalid score: reject, if labels are required.
Row read_row(const data::RecordSlice& record, const RowForm& form, prepare::FaultList& faults);

}  // namespace etc::glue
