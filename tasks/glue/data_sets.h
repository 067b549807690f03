// The data sets of the GLUE benchmark (Wang et al. 2019): columns, labels, names (dense-transformer 4.1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/base/fields.h"

namespace etc::glue {

enum class DataSet { cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli, ax };

// The metrics reported for predictions.
enum class Measures { accuracy, accuracy_f1, matthews, correlations };

struct DataSetInfo {
  DataSet set;
  const char* name;    // as in settings
  const char* folder;  // its name in the benchmark's distribution, also of its prediction file
  const char* text_a;  // column names in the header
  const char* text_b;  // "": only one text
  const char* label;
  bool label_is_last;               // the label is a row's last column, whatever their number
  bool id_is_first_column;          // else the number of the line
  std::vector<std::string> labels;  // in the order of the classes; empty: a real score, 0 … 5
  Measures measures;

  bool regression() const { return labels.empty(); }
  std::int64_t outputs() const { return regression() ? 1 : static_cast<std::int64_t>(labels.size()); }
};

// The name of a data set's predictions in a submission: that of its folder; MNLI has two, "MNLI-m" and "MNLI-mm".
std::string submission_name(const DataSetInfo& info, bool mismatched);

const DataSetInfo& info_of(DataSet set);
const std::vector<DataSetInfo>& data_sets();

// The words of the key `data_set`, for a FieldList.
template <typename Options>
FieldEntry<Options> data_set_entry(DataSet Options::*member, const char* help) {
  return {"data_set",
          member,
          help,
          {{"cola", DataSet::cola},
           {"sst-2", DataSet::sst2},
           {"mrpc", DataSet::mrpc},
           {"sts-b", DataSet::stsb},
           {"qqp", DataSet::qqp},
           {"mnli", DataSet::mnli},
           {"qnli", DataSet::qnli},
           {"rte", DataSet::rte},
           {"wnli", DataSet::wnli},
           {"ax", DataSet::ax}}};
}

}  // namespace etc::glue
