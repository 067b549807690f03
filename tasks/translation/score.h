// BLEU of a file of translations against files of references (translation 10).
#pragma once

#include <filesystem>
#include <vector>

#include "etc_core/base/fields.h"
#include "etc_core/base/json_fwd.h"
#include "tasks/task_kind.h"
#include "tasks/translation/bleu.h"

namespace etc::translation {

// The keys of section `task`: training and the options of BLEU.
struct TaskKeys {
  double label_smoothing = 0.1;
  BleuWords words = BleuWords::rules_13a;
  Smoothing smoothing = Smoothing::exponential;
  double smooth_value = 0;
  bool lower_case = false;
  bool paper_forms = false;
  std::int64_t bleu_beam = 0;

  BleuOptions options() const;
};

const FieldList<TaskKeys>& task_fields();

// Scores translations (one sentence per line, plain or gzip) against references; each gold file is one set of references.
//   "metrics": {"bleu": percent}, with paper_forms also "tokenised" and "compound_split": on the words as tokenised, without
//   smoothing, where a reference's <unk> matches nothing; the second with compounds split (section 10.1)
//   "brevity_penalty", "system_length", "reference_length", "segments", "precisions", "signature"
// With a baseline's translations also "baseline_bleu", "difference" and its bounds, "wins" and "p_value" of a paired
// bootstrap of 1,000 resamples (bootstrap.h).
// Throws Error naming the files for a line that is not UTF-8 or different numbers of lines; UsageError on an unknown key.
Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold,
                 const ScoreOptions& options);

}  // namespace etc::translation
