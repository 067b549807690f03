// Golden files that contain a certain group, and the groups that a format has in every file.
#pragma once

#include <string>
#include <vector>

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"

namespace etc::test {

// Throws Error naming the first of these groups that the file does not have below `parent`. A test that goes over the
// groups of a file would pass without them.
inline void require_groups(const GoldenFile& file, const std::string& parent, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string group = parent.empty() ? name : parent + "/" + name;
    if (!file.has(group)) fail(file.path().string(), "{} is absent, which every file of this format has", group);
  }
}

// The same for a file of the format dense_reference. Windows, pairs of labels and beams are the file's own.
inline void require_dense_reference(const GoldenFile& file) {
  require_groups(file, "", {"admin",     "analysis",  "analysis_etc",       "attention", "beam_search",
                            "bleu",      "cpc",       "checkpoint_average", "encoder",   "glue_metrics",
                            "instances", "masking",   "label_smoothing",    "meta",      "mlm_nsp",
                            "radam",     "schedules", "residual_scores",    "seq2seq",   "sinusoid",
                            "squad",     "t5"});
  require_groups(file, "attention",
                 {"absolute_learned",
                  "bigbird",
                  "etc_labels",
                  "huang_method1",
                  "huang_method2",
                  "huang_method3",
                  "huang_method4",
                  "huang_method4_clip2",
                  "nezha_index",
                  "nezha_signed",
                  "performer",
                  "plain",
                  "shaw_keys_and_values",
                  "shaw_per_head",
                  "shaw_shared_heads",
                  "t5_bidirectional",
                  "t5_causal",
                  "transformer_xl_causal_memory3",
                  "transformer_xl_causal_nomemory",
                  "xlnet_bidirectional"});
  require_groups(file, "bleu",
                 {"compound_split", "empty_hypotheses", "identical", "no_4gram", "one_reference", "short_hypotheses",
                  "some_empty", "tokenizer_13a", "two_references"});
  require_groups(file, "cpc", {"cosine_t0.1", "dot"});
  require_groups(file, "encoder",
                 {"post_ln", "pre_ln", "realformer_mean", "realformer_sum", "realformer_sum_pre_ln", "rezero",
                  "sandwich_post_ln", "sandwich_realformer_sum"});
  require_groups(file, "glue_metrics", {"overall"});
  require_groups(file, "instances", {"pieces", "whole_word"});
  require_groups(file, "label_smoothing", {"excluding_target_and_pad_kl", "uniform_all"});
  require_groups(file, "residual_scores", {"mean", "sum"});
  require_groups(file, "seq2seq", {"admin", "admin_residual_mean", "post_ln", "residual_mean", "residual_sum"});
  require_groups(file, "squad", {"best_threshold", "decode", "final_text", "metric", "windows"});
}

// Calls check(file) for every golden file with this group; "skipped" without any. A file of the format dense_reference
// must be whole.
template <typename Check>
void for_each_file_with(const std::string& group, Check&& check) {
  std::size_t files = 0;
  for (const std::filesystem::path& path : golden_files(".h5")) {
    const GoldenFile file(path);
    CAPTURE(path.filename().string());
    if (file.has_attribute("", "schema") && file.string_attribute("", "schema").starts_with("dense_reference")) {
      require_dense_reference(file);
    }
    if (!file.has(group)) continue;
    check(file);
    ++files;
  }
  if (files == 0) skip("no golden files with a group " + group);
}

}  // namespace etc::test
