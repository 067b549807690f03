#include "tasks/glue/data_sets.h"

namespace etc::glue {

const std::vector<DataSetInfo>& data_sets() {
  const std::vector<std::string> binary = {"0", "1"}, pairs = {"entailment", "not_entailment"},
                                 inference = {"contradiction", "entailment", "neutral"};
  using M = Measures;
  static const std::vector<DataSetInfo> kSets = {
      {DataSet::cola, "cola", "CoLA", "sentence", "", "label", false, false, binary, M::matthews},
      {DataSet::sst2, "sst-2", "SST-2", "sentence", "", "label", false, false, binary, M::accuracy},
      {DataSet::mrpc, "mrpc", "MRPC", "#1 String", "#2 String", "Quality", false, false, binary, M::accuracy_f1},
      {DataSet::stsb, "sts-b", "STS-B", "sentence1", "sentence2", "score", true, true, {}, M::correlations},
      {DataSet::qqp, "qqp", "QQP", "question1", "question2", "is_duplicate", false, true, binary, M::accuracy_f1},
      {DataSet::mnli, "mnli", "MNLI", "sentence1", "sentence2", "gold_label", true, true, inference, M::accuracy},
      {DataSet::qnli, "qnli", "QNLI", "question", "sentence", "label", true, true, pairs, M::accuracy},
      {DataSet::rte, "rte", "RTE", "sentence1", "sentence2", "label", true, true, pairs, M::accuracy},
      {DataSet::wnli, "wnli", "WNLI", "sentence1", "sentence2", "label", true, true, binary, M::accuracy},
      {DataSet::ax, "ax", "AX", "sentence1", "sentence2", "label", true, true, inference, M::matthews},
  };
  return kSets;
}

std::string submission_name(const DataSetInfo& info, bool mismatched) {
  return info.set == DataSet::mnli ? (mismatched ? "MNLI-mm" : "MNLI-m") : info.folder;
}

const DataSetInfo& info_of(DataSet set) {
  return data_sets()[static_cast<std::size_t>(set)];
}

}  // namespace etc::glue
