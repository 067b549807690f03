#include "tasks/serve/answers.h"

#include <chrono>
#include <semaphore>
#include <thread>

#include "etc_core/base/error.h"
#include "etc_core/base/machine_share.h"
#include "etc_core/base/words.h"
#include "tasks/serve/http_server.h"
#include "tasks/text/json_field.h"

namespace etc::serve {

namespace {

constexpr std::size_t kAhead = 32;  // items of one request that are waiting or being computed
constexpr int kTooMany = 429;
constexpr auto kPause = std::chrono::milliseconds(20);

// Preparing an item takes a processor and a multiple of the text's memory, so the number of threads that prepare at
// once is limited.
std::counting_semaphore<>& turns() {
  static std::counting_semaphore<> all(usable_processors());
  return all;
}

std::unique_ptr<Item> prepared(const MakeItem& make, std::string text, const std::string& what,
                               const std::function<bool()>& left) {
  turns().acquire();
  std::unique_ptr<Item> item;
  try {
    item = make(std::move(text), what);
  } catch (...) {
    turns().release();
    throw;
  }
  turns().release();
  if (item->job() != nullptr) item->job()->left = left;
  return item;
}

}  // namespace

std::string answer_one(Scheduler& scheduler, const MakeItem& make, std::string text,
                       const std::function<bool()>& left) {
  const auto item = prepared(make, std::move(text), "the request", left);
  if (Job* const job = item->job()) {
    scheduler.submit(*job);
    scheduler.wait(*job);
  }
  return item->answer();
}

Answers::Answers(Scheduler& scheduler, MakeItem make, NextText texts, TakeMemory take_memory,
                 std::function<bool()> left)
    : scheduler_(scheduler),
      make_(std::move(make)),
      texts_(std::move(texts)),
      take_memory_(std::move(take_memory)),
      left_(std::move(left)) {}

Answers::~Answers() {
  for (const Begun& begun : begun_) {
    if (begun.item == nullptr || begun.item->job() == nullptr) continue;
    try {
      scheduler_.wait(*begun.item->job());
    } catch (const Refused&) {  // the client is not interested any more
    }
  }
}

std::string Answers::refusal_line(std::int64_t record, int status, const std::string& message) const {
  return text::one_line({{"record", record}, {"status", status}, {"error", shortened(message, kToldBytes)}});
}

// Prepares the next item into held_, or appends the error line if it is refused; false: no more items, or no memory at
// present.
bool Answers::hold_next() {
  if (!text_ && !ended_) {
    text_ = texts_();
    ended_ = !text_;
    if (text_) ++made_;
  }
  if (!text_) return false;
  try {
    auto memory = take_memory_(*text_);
    if (!memory) return false;
    held_.memory = std::move(*memory);
    held_.item = prepared(make_, std::move(*text_), fmt::format("record {}", made_ - 1), left_);
  } catch (const Refused& refused) {
    held_ = {};
    begun_.push_back({{}, nullptr, refusal_line(made_ - 1, refused.status(), refused.what())});
  }
  text_.reset();
  return true;
}

// Prepares and queues items as long as there is space for them.
void Answers::begin_some() {
  while (begun_.size() < kAhead) {
    if (held_.item == nullptr && !hold_next()) return;
    if (held_.item == nullptr) continue;
    try {
      if (held_.item->job() != nullptr) scheduler_.submit(*held_.item->job());
    } catch (const Refused& refused) {
      if (refused.status() == kTooMany) {
        if (made_ == 1 && begun_.empty()) throw;
        return;
      }
      begun_.push_back({{}, nullptr, refusal_line(made_ - 1, refused.status(), refused.what())});
      held_ = {};
      continue;
    }
    begun_.push_back(std::exchange(held_, {}));
  }
}

std::optional<std::string> Answers::next() {
  if (left_ && left_()) return std::nullopt;
  begin_some();
  while (begun_.empty() && (held_.item != nullptr || text_)) {  // other requests use the whole budget
    if (left_ && left_()) return std::nullopt;
    std::this_thread::sleep_for(kPause);
    begin_some();
  }
  if (begun_.empty()) return std::nullopt;
  const Begun first = std::move(begun_.front());
  begun_.pop_front();
  const std::int64_t record = answered_++;
  if (first.item == nullptr) return first.refusal;
  try {
    if (Job* const job = first.item->job()) scheduler_.wait(*job);
    return first.item->answer();
  } catch (const Refused& refused) {
    if (refused.status() == kClientLeft) return std::nullopt;
    return refusal_line(record, refused.status(), refused.what());
  } catch (const Error& error) {
    return refusal_line(record, 500, error.what());
  }
}

}  // namespace etc::serve
