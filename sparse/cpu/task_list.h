// Code shared by the two divisions of an operator (by_queries-inl.h, by_keys-inl.h): a batch's tasks, each a range of
// queries or keys of one head of one example, and the slots for their partial sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sparse/cpu/tile_walk.h"

namespace etc::sparse {

// One task: consecutive groups of queries of one head of one example, and the keys it copies for them.
struct Task {
  std::int64_t example = 0, head = 0;
  std::int64_t query_row = 0;                   // row of the example's first query
  std::int64_t first_query = 0, end_query = 0;  // counted from it; first_query is the first of a group
  std::int64_t first_group = 0;                 // of the example, in the tiles
  KeyRange keys[kKeySets];
  int key_ranges = 0;
  std::int64_t slot = 0;  // offset in floats of its partial sums within all slots
};

// Sizes that the largest task needs.
struct TaskSizes {
  std::int64_t panel_keys[kKeySets] = {0, 0};  // keys of each of its ranges
  int panels = 0;
  std::int64_t columns = 0;  // keys a group has logits of at a time
  std::int64_t blocks = 0;   // key blocks of a group
};

// Numbers the tasks and slots of a batch, example by example. Within an example slots are ordered by (head, task), so
// that a sum over the tasks of a head reads memory sequentially and in an order that does not depend on the threads.
class TaskList {
 public:
  explicit TaskList(std::int64_t heads) : heads_(heads) {}

  // Adds the next example: its tasks per head, and the floats of each task's slot.
  void add(std::int64_t tasks_per_head, std::int64_t slot_floats) {
    examples_.push_back({tasks_, tasks_per_head, floats_, slot_floats});
    tasks_ += heads_ * tasks_per_head;
    floats_ += heads_ * tasks_per_head * slot_floats;
  }

  // Tasks of all examples, and floats of all slots.
  std::int64_t tasks() const { return tasks_; }
  std::int64_t floats() const { return floats_; }
  std::int64_t examples() const { return static_cast<std::int64_t>(examples_.size()); }
  std::int64_t tasks_per_head(std::int64_t example) const { return at(example).per_head; }
  std::int64_t slot_floats(std::int64_t example) const { return at(example).slot_floats; }
  std::int64_t slot(std::int64_t example, std::int64_t head, std::int64_t task) const {
    const Example& own = at(example);
    return own.first_float + (head * own.per_head + task) * own.slot_floats;
  }

  // Returns the example of a task; `task` becomes its number within the example.
  std::int64_t example_of(std::int64_t& task) const {
    // The first example that begins after the task.
    const auto after = std::upper_bound(examples_.begin(), examples_.end(), task,
                                        [](std::int64_t number, const Example& e) { return number < e.first_task; });
    // The last example that begins at or before the task; examples without tasks begin where the next one does.
    const auto own = after - 1;
    task -= own->first_task;
    return own - examples_.begin();
  }

 private:
  // first_task, first_float: of the example; per_head: tasks of each of its heads
  struct Example {
    std::int64_t first_task, per_head, first_float, slot_floats;
  };
  const Example& at(std::int64_t example) const { return examples_[static_cast<std::size_t>(example)]; }

  std::int64_t heads_, tasks_ = 0, floats_ = 0;
  std::vector<Example> examples_;
};

// Rows of an example: the row of its first token, and the number of rows.
struct RowRange {
  std::int64_t first = 0, count = 0;
};

// offsets [B+1]
inline RowRange rows_of(const std::vector<std::int64_t>& offsets, std::int64_t example) {
  const auto at = static_cast<std::size_t>(example);
  return {offsets[at], offsets[at + 1] - offsets[at]};
}

}  // namespace etc::sparse
