// The memory that a model carries from one segment of a text to the next (nn/segment_memory.h), during training or
// evaluation on a data set whose examples continue each other.
//
// Updates of a step become visible only with commit(): recomputing the same step reads the same memory.
//
// With several processes each stores the memory left by its own micro-batches. Which process computes a stream's next
// segment depends on the lengths in its batch, so a process receives the memory it lacks from the process that has it,
// before the step (fetch()).
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
  // For counting memory (nn/count_memory.h): every example is given as much memory as a model of this configuration
  // keeps, without values, and nothing is stored.
  explicit CarriedMemory(const EncoderConfig& counted);

  // From now on the model's passes read and store memory here, if the model carries any.
  void serve(TaskModel& model);

  // Puts into the input the memory left by the example before each of these in the same epoch; nothing for examples
  // that begin a text (Task::begins_text), or whose stream has not been read yet.
  void give(const Task& task, Examples examples, EncoderInput& input) const;
  // Stores the memory that these examples leave: a copy on the host. Empty: nothing.
  void take(Examples examples, const LayerMemory& after);
  // From now on give() uses what was stored since the last call; everything older is discarded.
  void commit();

  // Collective calls, between commit() and the passes after it. fetch: gets the memory that these micro-batches of this
  // process continue from, where another process has it. collect: sends everything to the first process, for a
  // checkpoint.
  void fetch(Communicator& processes, const Task& task, std::span<const std::vector<data::LoadedExample>> own);
  void collect(Communicator& processes);

  // The memory that give() would use, for a checkpoint: a tensor of each stream and layer, named kPrefix….
  static constexpr const char* kPrefix = "memory/";
  std::map<std::string, Tensor> tensors() const;
  // Throws Error naming `where` on anything tensors() cannot have written: another name, inconsistent layers.
  void set_tensors(const std::map<std::string, Tensor>& tensors, const std::string& where);

  // Most rows of each layer given to an example; 0: a model of this configuration has no memory.
  static std::int64_t rows_of(const EncoderConfig& model);
  // Most numbers that this many streams leave.
  static std::int64_t numbers_of(const EncoderConfig& model, std::int64_t streams);

 private:
  using Place = std::pair<std::int64_t, std::int64_t>;  // epoch, the example that continues
  using Left = std::vector<Tensor>;                     // [layers], [rows, H]

  const Left* of(const Task& task, const data::LoadedExample& example) const;
  void exchange(Communicator& processes, std::span<const Place> wanted, bool all_to_first);

  std::map<Place, Left> left_, taken_;
  Left counted_;  // not empty: memory is only counted
};

}  // namespace etc
