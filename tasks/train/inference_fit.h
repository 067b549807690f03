// Predictions in a given amount of memory: how many tokens are in memory at a time. An example's bits do not depend on
// its neighbours, so results do not depend on it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "etc_core/base/compute_type.h"
#include "etc_core/base/process_memory.h"
#include "tasks/task.h"
#include "tasks/train/model.h"

namespace etc {

// What is counted: makes a model without values, calls `loaded` when its weights are as they stay, and computes.
using CountedCall = std::function<void(const std::function<void()>& loaded)>;

class InferenceFit {
 public:
  // Made before the weights are loaded: what the process holds now is part of every peak. where: for messages, as is
  // the limit, in bytes of the process or of the device.
  InferenceFit(std::string where, std::int64_t limit, Device device, const EncoderConfig& model, InferenceTypes types);

  // More that will be held on the host beside all this, in bytes.
  void hold(std::int64_t bytes);

  // Expected peak of the process with such a call.
  ProcessMemory memory(const CountedCall& call) const;
  std::int64_t peak(const CountedCall& call) const { return memory(call).peak(); }
  bool fits(const CountedCall& call) const { return peak(call) <= limit_; }

  // Tokens of a micro-batch with which all of the data fits, the most of them up to `most`; 1 is one example at a time.
  // call: of these examples. Throws Error when an example alone does not fit, telling the longest that does.
  std::int64_t choose(const data::DatasetReader& reader, std::int64_t most,
                      const std::function<CountedCall(Examples)>& call);

  // Throws Error: `what`, of so many long and global tokens, does not fit. Tells how long an input of the encoder with
  // as many long tokens per global one may be.
  [[noreturn]] void refuse(const std::string& what, std::int64_t long_tokens, std::int64_t global_tokens,
                           const CountedCall& call) const;

 private:
  bool fits_all(const data::DatasetReader& reader, std::int64_t micro_batch_tokens,
                const std::function<CountedCall(Examples)>& call) const;

  std::string where_;
  std::int64_t limit_;
  Device device_;
  ModelConfig model_;
  InferenceTypes types_;
  std::int64_t held_;    // by the ledger
  std::int64_t beside_;  // what the process holds beside, and what is known to come
};

// Predicts examples with a task's model and its head.
CountedCall counted_prediction(const TaskModel& model, InferenceTypes types, Examples examples,
                               const std::string& where);

}  // namespace etc
