// What a model with memory carries from the segments of its texts to those after them (nn/segment_memory.h), while a data
// set whose examples go on in each other is trained on or evaluated.
//
// Nothing of a step is seen before commit(): the same step computed again reads the same memory.
//
// Of several processes each takes what its own micro-batches leave. Which process computes a stream's next segment depends
// on the lengths in its batch, so what a process lacks is sent by the one that has it, before the step (fetch()).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/comm/communicator.h"
#include "etc_core/nn/encoder_config.h"
#include "tasks/task.h"

namespace etc {

struct TaskModel;  // model.h

// Whether a model of this configuration carries memory over the examples of this task (a complete section `task`).
bool carries_memory(const EncoderConfig& model, const Json& task_section);

class CarriedMemory : NotCopied {
 public:
  CarriedMemory() = default;
  // For counting memory (nn/count_memory.h): every example is given as much as a model of this
  // configuration remembers, without values, and nothing is taken.
  explicit CarriedMemory(const EncoderConfig& counted);

  // From now on the model's passes read and leave memory here, where it carries any; where it does not, none at all.
  void serve(TaskModel& model);

  // Puts into the input what the example before each of these left in the same epoch; nothing for those that begin a
  // text (Task::begins_text), or of whose stream nothing has been read.
  void give(const Task& task, Examples examples, EncoderInput& input) const;
  // What these examples leave: a copy, on the host. Empty: nothing.
  void take(Examples examples, const LayerMemory& after);
  // What was taken since the last call is what is given from now on, in the place of all before.
  void commit();

  // Calls of all processes, between commit() and the passes after it. fetch: what these micro-batches of this process go on
  // from comes here, where another one has it. collect: everything comes to the first process, for a checkpoint.
  void fetch(Communicator& processes, const Task& task, std::span<const std::vector<data::LoadedExample>> own);
  void collect(Communicator& processes);

  // What would be given, for a checkpoint: a tensor of each stream and layer, named kPrefix….
  static constexpr const char* kPrefix = "memory/";
  std::map<std::string, Tensor> tensors() const;
  // Throws Error naming `where` at what tensors() does not give: another name, layers that do not fit each other.
  void set_tensors(const std::map<std::string, Tensor>& tensors, const std::string& where);

  // Rows of each layer that an example is given at most; 0: a model of this configuration remembers nothing.
  static std::int64_t rows_of(const EncoderConfig& model);
  // Numbers that so many streams leave at most.
  static std::int64_t numbers_of(const EncoderConfig& model, std::int64_t streams);

 private:
  using Place = std::pair<std::int64_t, std::int64_t>;  // epoch, the example that goes on
  using Left = std::vector<Tensor>;                     // [layers], [rows, H]

  const Left* of(const Task& task, const data::LoadedExample& example) const;
  void exchange(Communicator& processes, std::span<const Place> wanted, bool all_to_first);

  std::map<Place, Left> left_, taken_;
  Left counted_;  // not empty: memory is counted
};

}  // namespace etc
