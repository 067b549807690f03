// One row of a GLUE file, original or raw release, read and checked (dense-transformer 4.1, 8). What depends on a
// tokenizer is not here.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/readers/table_reader.h"
#include "tasks/glue/data_sets.h"
#include "tasks/prepare/preparation.h"

namespace etc::glue {

// How a file's rows are read. commas: the raw release of STS-B, two texts and a score without a header.
struct RowForm {
  DataSet set = DataSet::cola;
  data::TableForm form = data::TableForm::tabs;
  bool labels_required = true;
};

struct Row {
  std::string id;              // its first column, or the number of its line from 0, a header counted
  std::string text_a, text_b;  // text_b "": none
  std::int64_t label = -1;     // class; -1: none, or a score
  std::optional<double> score;
};

// A reader of the rows. It throws InputFault "header_unexpected", showing the header found, where that lacks a column of
// the data set or the file is empty (CoLA's files have none, but its test file).
std::unique_ptr<data::RecordReader> open_rows(data::ByteStream& stream, const RowForm& form);

// Reads a row and reports what is wrong with it, with its line. Too few columns: reject (QQP: drop, as the reference
// leaves such rows out); a label of no class, a score that is none: reject, where labels are required.
Row read_row(const data::RecordSlice& record, const RowForm& form, prepare::FaultList& faults);

}  // namespace etc::glue
