// The answers to the items of one request, in order, some of them computed while others are prepared and sent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "etc_core/base/not_copied.h"
#include "tasks/serve/items.h"
#include "tasks/serve/scheduler.h"

namespace etc::serve {

// The next item's text; nullopt: there are no more.
using NextText = std::function<std::optional<std::string>()>;
// As the functions of items.h.
using MakeItem = std::function<std::unique_ptr<Item>(std::string text, const std::string& what)>;

// One item, computed and answered. Throws Refused.
std::string answer_one(Scheduler& scheduler, const MakeItem& make, std::string text, const std::function<bool()>& left);

class Answers : NotCopied {
 public:
  // left: as a Job's. All that is given outlives the object.
  Answers(Scheduler& scheduler, MakeItem make, NextText texts, std::function<bool()> left);
  ~Answers();  // waits for what is being computed

  // The next answer, a line of JSON; {"record": its number from 0, "status", "error"} of an item that has none. nullopt:
  // that was the last, or the client left. Throws Refused when none could be begun: too many requests are waiting.
  std::optional<std::string> next();

 private:
  struct Begun {
    std::unique_ptr<Item> item;  // null: refused
    std::string refusal;         // the line
  };

  void begin_some();
  Begun begin(std::string text);
  std::string refusal_line(std::int64_t record, int status, const std::string& message) const;

  Scheduler& scheduler_;
  MakeItem make_;
  NextText texts_;
  std::function<bool()> left_;
  std::deque<Begun> begun_;
  std::int64_t made_ = 0, answered_ = 0;
  std::unique_ptr<Item> held_;  // prepared, but there was no room
  bool ended_ = false;
};

}  // namespace etc::serve
