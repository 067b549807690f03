// Contrastive predictive coding over the hidden sentences of a whole optimiser batch.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tasks/pretrain/options.h"
#include "tasks/whole_batch.h"

namespace etc::pretrain {

// The loss and its gradient (loss.h) of the m hidden sentences of a batch, from which each micro-batch takes its rows.
struct ComparedSentences {
  std::vector<double> losses;                      // [m], times the scale
  std::vector<float> dpredicted, dtarget;          // [m, H]; no dtarget with options.cpc_stop_target_gradient
  std::map<std::int64_t, std::int64_t> first_row;  // as in BatchRows
};

// rows: [m, 2·H], of each sentence the prediction and the target. scale: w_cpc / m.
ComparedSentences compared(const BatchRows& rows, const Options& options, std::int64_t width, double scale);

// Bytes of the rows, their copies, the gradients and the [m, m] logits while compared() computes.
std::int64_t hidden_bytes(std::int64_t sentences, std::int64_t width);

}  // namespace etc::pretrain
