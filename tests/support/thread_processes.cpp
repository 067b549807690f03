#include "tests/support/thread_processes.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "etc_core/base/error.h"

namespace etc::test {

namespace {

// Messages in transit, by sender, receiver and tag.
struct Mail {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::tuple<int, int, int>, std::deque<std::string>> boxes;
  bool failed = false;  // a rank has thrown: all waits end
};

struct ThreadTransfer : Transfer {
  int tag = 0;
  std::vector<Incoming> in;
  std::vector<bool> had_content;  // for each received message
  std::shared_ptr<const void> memory;

  bool came(std::size_t i) const override { return had_content.at(i); }
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(Mail& mail, int rank, int size) : Communicator(rank, size), mail_(mail) {}
  [[noreturn]] void end_all(const std::string& message, int) override { throw Error(message); }

 private:
  void do_exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
    for (const Outgoing& message : out) {
      put(message.to, 0, std::string(static_cast<const char*>(message.data), static_cast<std::size_t>(message.bytes)));
    }
    for (const Incoming& message : in) {
      const std::string text = take(message.from, 0).value();
      if (std::ssize(text) != message.bytes) {
        fail("test", "rank {} expected {} bytes of rank {}, got {}", rank(), message.bytes, message.from, text.size());
      }
      if (!text.empty()) std::memcpy(message.data, text.data(), text.size());
    }
  }

  std::shared_ptr<Transfer> do_start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                     std::shared_ptr<const void> memory) override {
    for (const Outgoing& message : out) {
      const auto bytes = static_cast<std::size_t>(message.data != nullptr ? message.bytes : 0);
      put(message.to, tag, std::string(static_cast<const char*>(message.data), bytes));
    }
    auto transfer = std::make_shared<ThreadTransfer>();
    transfer->tag = tag;
    transfer->in.assign(in.begin(), in.end());
    transfer->memory = std::move(memory);
    return transfer;
  }

  bool try_finish(Transfer& transfer) override { return receive(transfer, Wait::no); }
  void finish(Transfer& transfer) override { receive(transfer, Wait::yes); }

  enum class Wait : bool { no, yes };

  // Receives messages; returns whether all have arrived.
  bool receive(Transfer& transfer, Wait wait) {
    auto& own = dynamic_cast<ThreadTransfer&>(transfer);
    while (own.had_content.size() < own.in.size()) {
      const Incoming& message = own.in[own.had_content.size()];
      const std::optional<std::string> text = take(message.from, own.tag, wait);
      if (!text) return false;
      if (!text->empty() && std::ssize(*text) != message.bytes) {
        fail("test", "rank {} expected {} bytes of rank {} or none, got {}", rank(), message.bytes, message.from,
             text->size());
      }
      if (!text->empty()) std::memcpy(message.data, text->data(), text->size());
      own.had_content.push_back(!text->empty());
    }
    return true;
  }

  std::vector<std::string> do_gather(std::string_view own) override {
    for (int to = 0; to < size(); ++to) put(to, 0, std::string(own));
    std::vector<std::string> all;
    for (int from = 0; from < size(); ++from) all.push_back(take(from, 0).value());
    return all;
  }

  void put(int to, int tag, std::string text) {
    const std::lock_guard lock(mail_.mutex);
    mail_.boxes[{rank(), to, tag}].push_back(std::move(text));
    mail_.changed.notify_all();
  }

  std::optional<std::string> take(int from, int tag, Wait wait = Wait::yes) {
    std::unique_lock lock(mail_.mutex);
    auto& box = mail_.boxes[{from, rank(), tag}];
    if (wait == Wait::no && box.empty()) return std::nullopt;
    mail_.changed.wait(lock, [&] { return !box.empty() || mail_.failed; });
    if (box.empty()) fail("test", "rank {} waits for rank {}, and another one failed", rank(), from);
    std::string text = std::move(box.front());
    box.pop_front();
    return text;
  }

  Mail& mail_;
};

}  // namespace

void run_processes(int size, const std::function<void(Communicator& processes)>& body) {
  Mail mail;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadCommunicator own(mail, rank, size);
        body(own);
      } catch (...) {
        const std::lock_guard lock(mail.mutex);
        if (!mail.failed) first = std::current_exception();
        mail.failed = true;
        mail.changed.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace etc::test
