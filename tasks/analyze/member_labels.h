// Which long and global tokens belong to each other, for an encoder whose labels do not say it because it has no relative
// positions (relative_pos_max_distance 0). The data do: the task feeds them to such an encoder with labels, which see the
// same pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/base/not_copied.h"
#include "tasks/train/fed_encoder.h"

namespace etc::analyze {

class MemberLabels : NotCopied {
 public:
  explicit MemberLabels(const FedEncoder& fed);

  // Whether the encoder has global tokens and no labels of its own; otherwise nothing below may be called.
  bool needed() const { return task_ != nullptr; }
  // Builds the labels of a batch; they replace those of the batch before.
  void read(Examples examples);
  // The layer with these labels, beside a table of zero biases. Valid until the next read().
  WatchedAttention labelled(const WatchedAttention& watched) const;
  static std::int64_t member_label();

 private:
  std::unique_ptr<Task> task_;
  std::string where_;
  std::int64_t radius_ = 0;
  std::vector<float> no_biases_;
  std::vector<sparse::AttentionTiles> tiles_;  // of the long and the global operator
};

}  // namespace etc::analyze
