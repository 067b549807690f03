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
#include "tasks/serve/room.h"
#include "tasks/serve/scheduler.h"

namespace etc::serve {

// The next item's text; nullopt: there are no more.
using NextText = std::function<std::optional<std::string>()>;
// As the functions of items.h.
using MakeItem = std::function<std::unique_ptr<Item>(std::string text, const std::string& what)>;

// The memory that an item of this text takes; nullopt: others have it now. Throws Refused where there never is so much.
using TakeRoom = std::function<std::optional<Room::Part>(const std::string& text)>;

// One item, computed and answered. Throws Refused.
std::string answer_one(Scheduler& scheduler, const MakeItem& make, std::string text, const std::function<bool()>& left);

class Answers : NotCopied {
 public:
  // left: as a Job's. All that is given outlives the object.
  Answers(Scheduler& scheduler, MakeItem make, NextText texts, TakeRoom room, std::function<bool()> left);
  ~Answers();  // waits for what is being computed

  // The next answer, a line of JSON; {"record": its number from 0, "status", "error"} of an item that has none. nullopt:
  // that was the last, or the client left. Throws Refused when none could be begun: too many requests are waiting.
  std::optional<std::string> next();

 private:
  struct Begun {
    Room::Part room;
    std::unique_ptr<Item> item;  // null: refused
    std::string refusal;         // the line
  };

  void begin_some();
  bool hold_next();
  std::string refusal_line(std::int64_t record, int status, const std::string& message) const;

  Scheduler& scheduler_;
  MakeItem make_;
  NextText texts_;
  TakeRoom room_;
  std::function<bool()> left_;
  std::deque<Begun> begun_;
  std::int64_t made_ = 0, answered_ = 0;
  std::optional<std::string> text_;  // read, but not prepared for want of memory
  Begun held_;                       // prepared, if it has an item, but not queued
  bool ended_ = false;
};

}  // namespace etc::serve
