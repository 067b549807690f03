// Predictions within a memory limit: how many tokens are in memory at a time. An example's bits do not depend on its
// neighbours, so results do not depend on this number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "data/dataset.h"
#include "etc_core/base/compute_type.h"
#include "etc_core/base/process_memory.h"
#include "tasks/task.h"
#include "tasks/train/model.h"

namespace etc {

// The call to count: makes a model without values, calls `loaded` when its weights are in their final form, and
// computes.
using CountedCall = std::function<void(const std::function<void()>& loaded)>;

class InferenceFit {
 public:
  // Made before the weights are loaded: memory that the process holds now is part of every peak. where: for messages.
  // limit: in bytes of the process or of the device; also used in messages.
  InferenceFit(std::string where, std::int64_t limit, Device device, const EncoderConfig& model, InferenceTypes types);

  // Adds memory in bytes that will be held on the host in addition.
  void hold(std::int64_t bytes);

  // Expected peak of the process with such a call.
  ProcessMemory memory(const CountedCall& call) const;
  std::int64_t peak(const CountedCall& call) const { return memory(call).peak(); }
  bool fits(const CountedCall& call) const { return peak(call) <= limit_; }

  // Tokens of a micro-batch with which all of the data fits, as many as possible up to `most`; 1 means one example at a
  // time. call: makes the counted call for given examples. Throws Error when a single example does not fit, naming the
  // longest one that does.
  std::int64_t choose(const data::DatasetReader& reader, std::int64_t most,
                      const std::function<CountedCall(Examples)>& call);

  // Throws Error: `what`, with these numbers of long and global tokens, does not fit. The message says how long an
  // encoder input with the same ratio of long to global tokens may be.
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
  std::int64_t held_;    // according to the ledger
  std::int64_t beside_;  // other memory of the process now, and known later additions
};

// Prediction of examples with a task's model and its head.
CountedCall counted_prediction(const TaskModel& model, InferenceTypes types, Examples examples,
                               const std::string& where);

}  // namespace etc
