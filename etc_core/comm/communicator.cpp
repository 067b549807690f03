#include "etc_core/comm/communicator.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/comm/device_link.h"

namespace etc {

namespace {

// Adds the time from its construction to its destruction to `seconds`.
class Stopwatch : NotCopied {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point start_ = Clock::now();
};

class OneProcess : public Communicator {
 public:
  OneProcess() : Communicator(0, 1) {}
  [[noreturn]] void end_all(const std::string& message, int code) override {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::_Exit(code);
  }

 private:
  void do_exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
    if (!out.empty() || !in.empty()) fail("communicator", "a process that is alone has nobody to exchange with");
  }
  std::shared_ptr<Transfer> do_start(int, std::span<const Outgoing> out, std::span<const Incoming> in,
                                     std::shared_ptr<const void>) override {
    do_exchange(out, in);
    return std::make_shared<Nothing>();
  }
  bool try_finish(Transfer&) override { return true; }
  void finish(Transfer&) override {}
  std::vector<std::string> do_gather(std::string_view own) override { return {std::string(own)}; }

  struct Nothing : Transfer {
    bool came(std::size_t) const override { return false; }
  };
};

}  // namespace

Communicator& one_process() {
  static OneProcess alone;
  return alone;
}

std::unique_ptr<DeviceLink> Communicator::link_devices() {
  return nullptr;
}

std::string Communicator::name_of(int rank) const {
  return fmt::format("rank {} of {} on {}", rank, size_, host_of(rank));
}

void Communicator::exchange(std::span<const Outgoing> out, std::span<const Incoming> in) {
  for (const Outgoing& message : out) bytes_sent_ += message.bytes;
  const Stopwatch measured(seconds_);
  do_exchange(out, in);
}

std::shared_ptr<Transfer> Communicator::start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                              std::shared_ptr<const void> memory) {
  for (const Outgoing& message : out) bytes_sent_ += message.data != nullptr ? message.bytes : 0;
  const Stopwatch measured(seconds_);
  return do_start(tag, out, in, std::move(memory));
}

void Communicator::wait(Transfer& transfer) {
  const Stopwatch measured(seconds_);
  finish(transfer);
}

std::vector<std::string> Communicator::gather(std::string_view own) {
  bytes_sent_ += static_cast<std::int64_t>(own.size()) * (size_ - 1);
  const Stopwatch measured(seconds_);
  return do_gather(own);
}

std::string from_first(Communicator& processes, std::string_view own) {
  return processes.gather(processes.first() ? own : std::string_view()).front();
}

void broadcast(Communicator& processes, void* data, std::int64_t bytes) {
  const int rank = processes.rank();
  // Before each round, ranks below `have` hold the bytes; each of them sends them to one more rank.
  for (int have = 1; have < processes.size(); have *= 2) {
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    if (rank < have && rank + have < processes.size()) out.push_back({rank + have, data, bytes});
    if (rank >= have && rank < 2 * have) in.push_back({rank - have, data, bytes});
    processes.exchange(out, in);
  }
}

std::vector<std::string> collect(Communicator& processes, std::string_view own) {
  const std::int64_t size = std::ssize(own);
  const std::vector<std::string> sizes = processes.gather({reinterpret_cast<const char*>(&size), sizeof size});
  if (!processes.first()) {
    const Outgoing message{0, own.data(), size};
    processes.exchange({&message, 1}, {});
    return {};
  }
  std::vector<std::string> all{std::string(own)};
  std::vector<Incoming> in;
  all.reserve(sizes.size());
  for (int rank = 1; rank < processes.size(); ++rank) {
    std::int64_t coming = 0;
    std::memcpy(&coming, sizes[static_cast<std::size_t>(rank)].data(), sizeof coming);
    std::string& text = all.emplace_back(static_cast<std::size_t>(coming), '\0');
    in.push_back({rank, text.data(), coming});
  }
  processes.exchange({}, in);
  return all;
}

bool any_of(Communicator& processes, bool own) {
  for (const std::string& one : processes.gather(own ? "1" : "0")) {
    if (one == "1") return true;
  }
  return false;
}

}  // namespace etc
