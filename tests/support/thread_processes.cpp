#include "tests/support/thread_processes.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "etc_core/base/error.h"

namespace etc::test {

namespace {

// What is on its way, by sender and receiver.
struct Mail {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::string>> boxes;
  bool failed = false;  // a rank has thrown: nobody waits any more
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(Mail& mail, int rank, int size) : Communicator(rank, size), mail_(mail) {}
  [[noreturn]] void end_all(const std::string& message, int) override { throw Error(message); }

 private:
  void do_exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
    for (const Outgoing& message : out) {
      put(message.to, std::string(static_cast<const char*>(message.data), static_cast<std::size_t>(message.bytes)));
    }
    for (const Incoming& message : in) {
      const std::string text = take(message.from);
      if (std::ssize(text) != message.bytes) {
        fail("test", "rank {} expected {} bytes of rank {}, got {}", rank(), message.bytes, message.from, text.size());
      }
      if (!text.empty()) std::memcpy(message.data, text.data(), text.size());
    }
  }

  std::vector<std::string> do_gather(std::string_view own) override {
    for (int to = 0; to < size(); ++to) put(to, std::string(own));
    std::vector<std::string> all;
    for (int from = 0; from < size(); ++from) all.push_back(take(from));
    return all;
  }

  void put(int to, std::string text) {
    const std::lock_guard lock(mail_.mutex);
    mail_.boxes[{rank(), to}].push_back(std::move(text));
    mail_.changed.notify_all();
  }

  std::string take(int from) {
    std::unique_lock lock(mail_.mutex);
    auto& box = mail_.boxes[{from, rank()}];
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
