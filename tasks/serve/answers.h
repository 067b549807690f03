// The answers to the items of one request, in order; some items are computed while others are prepared and sent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "etc_core/base/not_copied.h"
#include "tasks/serve/items.h"
#include "tasks/serve/memory_budget.h"
#include "tasks/serve/scheduler.h"

namespace etc::serve {

// The next item's text; nullopt: no more items.
using NextText = std::function<std::optional<std::string>()>;
// As the functions of items.h.
using MakeItem = std::function<std::unique_ptr<Item>(std::string text, const std::string& what)>;

// Reserves the memory for an item with this text; nullopt: currently used by others. Throws Refused if it exceeds the
// whole budget.
using TakeMemory = std::function<std::optional<MemoryBudget::Part>(const std::string& text)>;

// Computes and answers one item. Throws Refused.
std::string answer_one(Scheduler& scheduler, const MakeItem& make, std::string text, const std::function<bool()>& left);

class Answers : NotCopied {
 public:
  // left: as a Job's. All arguments must outlive the object.
  Answers(Scheduler& scheduler, MakeItem make, NextText texts, TakeMemory take_memory, std::function<bool()> left);
  ~Answers();  // waits for running computations

  // The next answer, a line of JSON; {"record": its number from 0, "status", "error"} for an item without an answer.
  // nullopt: there are no more, or the client left. Throws Refused when no item could be queued because too many
  // requests are waiting.
  std::optional<std::string> next();

 private:
  struct Begun {
    MemoryBudget::Part memory;
    std::unique_ptr<Item> item;  // null: refused
    std::string refusal;         // the error line
  };

  void begin_some();
  bool hold_next();
  std::string refusal_line(std::int64_t record, int status, const std::string& message) const;

  Scheduler& scheduler_;
  MakeItem make_;
  NextText texts_;
  TakeMemory take_memory_;
  std::function<bool()> left_;
  std::deque<Begun> begun_;
  std::int64_t made_ = 0, answered_ = 0;
  std::optional<std::string> text_;  // read, but not prepared because memory is lacking
  Begun held_;                       // prepared, if it has an item, but not queued
  bool ended_ = false;
};

}  // namespace etc::serve
