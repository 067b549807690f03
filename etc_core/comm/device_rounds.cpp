#include "etc_core/comm/device_rounds.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/comm/wait_until.h"

namespace etc {

class DeviceRounds::Round : public Transfer {
 public:
  Round(int tag, std::span<const Outgoing> out, std::span<const Incoming> in, std::shared_ptr<const void> memory)
      : tag_(tag), out_(out.begin(), out.end()), in_(in.begin(), in.end()), memory_(std::move(memory)) {}

  // Tells all peers that this process has started the round, with one letter per message: '1' with content, '0'
  // without.
  void tell(Communicator& processes, DeviceLink& link) {
    ready_ = link.mark();
    const auto count = static_cast<std::size_t>(processes.size());
    contents_->out.assign(count, "s");
    contents_->in.assign(count, "s");
    for (const Outgoing& message : out_) of(contents_->out, message.to) += message.data != nullptr ? '1' : '0';
    for (const Incoming& message : in_) {
      letter_of_.push_back(of(contents_->in, message.from).size());
      of(contents_->in, message.from) += '0';
    }
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (int rank = 0; rank < processes.size(); ++rank) {
      if (rank == processes.rank()) continue;
      out.push_back({rank, of(contents_->out, rank).data(), std::ssize(of(contents_->out, rank))});
      in.push_back({rank, of(contents_->in, rank).data(), std::ssize(of(contents_->in, rank))});
    }
    told_ = processes.start(tag_, out, in, contents_);
  }

  // Whether all other processes have announced that they started the round.
  bool started_everywhere(Communicator& processes) { return processes.done(*told_); }

  void carry(DeviceLink& link) {
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (const Outgoing& message : out_) {
      if (message.data != nullptr) out.push_back(message);
    }
    for (std::size_t i = 0; i < in_.size(); ++i) {
      if (came(i)) in.push_back(in_[i]);
    }
    end_ = link.carry(ready_, out, in);
  }

  bool check_over(DeviceLink& link) { return over_ = over_ || link.over(end_); }
  bool over() const { return over_; }
  int tag() const { return tag_; }
  bool came(std::size_t i) const override { return of(contents_->in, in_.at(i).from)[letter_of_[i]] == '1'; }

 private:
  struct Contents {
    std::vector<std::string> out, in;  // by rank
  };

  static std::string& of(std::vector<std::string>& by_rank, int rank) {
    return by_rank[static_cast<std::size_t>(rank)];
  }

  const int tag_;
  const std::vector<Outgoing> out_;
  const std::vector<Incoming> in_;
  const std::shared_ptr<const void> memory_;
  const std::shared_ptr<Contents> contents_ = std::make_shared<Contents>();
  std::vector<std::size_t> letter_of_;  // by incoming message
  std::shared_ptr<Transfer> told_;
  DeviceLink::Mark ready_, end_;
  bool over_ = false;
};

DeviceRounds::DeviceRounds(Communicator& processes, std::unique_ptr<DeviceLink> link)
    : processes_(processes), link_(std::move(link)) {}

DeviceRounds::~DeviceRounds() = default;

std::shared_ptr<Transfer> DeviceRounds::start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                              std::shared_ptr<const void> memory) {
  if (tag < 1 || tag >= kOrderTag) fail("device link", "expected a tag from 1 to {}, got {}", kOrderTag - 1, tag);
  std::int64_t bytes = 0;
  for (const Outgoing& message : out) bytes += message.data != nullptr ? message.bytes : 0;
  processes_.count_elsewhere(bytes, 0);
  const auto round = std::make_shared<Round>(tag, out, in, std::move(memory));
  round->tell(processes_, *link_);
  waiting_.push_back(round);
  if (!processes_.first()) {
    Announcement& coming = announcements_.emplace_back();
    const Incoming message{0, coming.tag.get(), sizeof *coming.tag};
    coming.transfer = processes_.start(kOrderTag, {}, {&message, 1}, coming.tag);
  }
  advance();
  return round;
}

void DeviceRounds::announce(int tag) {
  const auto said = std::make_shared<std::int32_t>(tag);
  std::vector<Outgoing> out;
  for (int rank = 1; rank < processes_.size(); ++rank) out.push_back({rank, said.get(), sizeof *said});
  processes_.start(kOrderTag, out, {}, said);
}

// Moves the announced round from waiting_ to next_; of several rounds of one tag, the one that was started first.
void DeviceRounds::take_next(int tag) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [tag](const auto& r) { return r->tag() == tag; });
  if (found == waiting_.end()) fail("device link", "round {} is next in other processes and not started here", tag);
  next_.push_back(*found);
  waiting_.erase(found);
}

void DeviceRounds::advance() {
  if (processes_.first()) {
    std::vector<int> complete;
    for (const auto& round : waiting_) {
      if (round->started_everywhere(processes_)) complete.push_back(round->tag());
    }
    for (const int tag : complete) {
      announce(tag);
      take_next(tag);
    }
  }
  while (!announcements_.empty() && processes_.done(*announcements_.front().transfer)) {
    take_next(*announcements_.front().tag);
    announcements_.pop_front();
  }
  while (!next_.empty() && next_.front()->started_everywhere(processes_)) {
    next_.front()->carry(*link_);
    moving_.push_back(next_.front());
    next_.pop_front();
  }
  std::erase_if(moving_, [this](const auto& round) { return round->check_over(*link_); });
}

bool DeviceRounds::done(Transfer& transfer) {
  advance();
  return dynamic_cast<Round&>(transfer).over();
}

void DeviceRounds::wait(Transfer& transfer) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  wait_until([&] { return done(transfer); });
  processes_.count_elsewhere(0, std::chrono::duration<double>(Clock::now() - start).count());
}

std::shared_ptr<DeviceRounds> rounds_between(Communicator& processes, Device device) {
  if (processes.size() == 1 || device == Device::cpu) return nullptr;
  std::unique_ptr<DeviceLink> link = processes.link_devices();
  return link ? std::make_shared<DeviceRounds>(processes, std::move(link)) : nullptr;
}

}  // namespace etc
