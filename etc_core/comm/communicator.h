// Several processes that work as one: who is who, and bytes from one to another.
//
// The invariant to remember: nothing here adds numbers. How a library adds floats depends on how many processes there
// are; so bytes alone travel, and whoever adds does so in an order that does not know the processes (optim/tree_sum.h).
// Libraries that carry the bytes are included by files of this folder and by no others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc {

struct Outgoing {
  int to = 0;
  const void* data = nullptr;
  std::int64_t bytes = 0;
};

struct Incoming {
  int from = 0;
  void* data = nullptr;
  std::int64_t bytes = 0;
};

// Messages on their way while this process does something else. Destroyed before it is done it goes on, and its memory
// stays.
class Transfer : NotCopied {
 public:
  virtual ~Transfer() = default;
  // Whether incoming message i, which has come, had content.
  virtual bool came(std::size_t i) const = 0;
};

class DeviceLink;  // device_link.h

// Calls are collective: every process makes the same ones in the same order, from one thread at a time. A process that
// cannot go on while others wait for it must tell them, with end_all().
class Communicator : NotCopied {
 public:
  virtual ~Communicator() = default;

  int rank() const { return rank_; }  // 0 … size()-1
  int size() const { return size_; }
  bool first() const { return rank_ == 0; }  // the one that writes files and speaks to people

  // All messages of this process in one round; returns when all have gone and come. Messages from one process to
  // another arrive in the order of their lists, where both say the same sizes. None goes to the process itself.
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in);

  // Such a round that goes on by itself, beside other calls; several may be on their way. Messages of one tag (1 … 32767)
  // from one process to another arrive in the order in which they were started; the receiver may start its part sooner
  // or later than the sender. Data of an outgoing message may be null: it has no content, where the other side knows only
  // how many bytes there would be (came()). memory: whatever holds the messages' data, which nobody else touches.
  std::shared_ptr<Transfer> start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                  std::shared_ptr<const void> memory);
  bool done(Transfer& transfer) { return try_finish(transfer); }
  void wait(Transfer& transfer);

  // What every process gives, by rank, in every process.
  std::vector<std::string> gather(std::string_view own);

  // "rank 2 of 4 on b", for messages; the machine's own name.
  std::string name_of(int rank) const;
  const std::string& host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }

  // Ends all processes with this one's message and exit code. Does not return, and runs no destructors: what is half
  // written stays under its temporary name.
  [[noreturn]] virtual void end_all(const std::string& message, int code) = 0;

  // Of processes whose open devices can send each other messages themselves (a device each, and NCCL): what does so. Else
  // null, in all of them.
  virtual std::unique_ptr<DeviceLink> link_devices();

  // Payload that this process has sent so far, and the time it has spent in calls, waiting for others included.
  std::int64_t bytes_sent() const { return bytes_sent_; }
  double seconds() const { return seconds_; }
  // Adds to both what went beside the communicator (device_rounds.h).
  void count_elsewhere(std::int64_t bytes, double seconds) {
    bytes_sent_ += bytes;
    seconds_ += seconds;
  }

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size), hosts_(static_cast<std::size_t>(size), "this machine") {}

  // What is put here first of all: the machines' names by rank.
  void set_hosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }

 private:
  virtual void do_exchange(std::span<const Outgoing> out, std::span<const Incoming> in) = 0;
  virtual std::shared_ptr<Transfer> do_start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                             std::shared_ptr<const void> memory) = 0;
  virtual bool try_finish(Transfer& transfer) = 0;
  virtual void finish(Transfer& transfer) = 0;
  virtual std::vector<std::string> do_gather(std::string_view own) = 0;

  int rank_, size_;
  std::vector<std::string> hosts_;
  std::int64_t bytes_sent_ = 0;
  double seconds_ = 0;
};

// The communicator of a process that is alone.
Communicator& one_process();

// The first process's bytes, in every process.
std::string from_first(Communicator& processes, std::string_view own);

// The first process's `bytes` at `data` come to `data` of every process, each of which passes them on: as many rounds
// as size() has binary digits.
void broadcast(Communicator& processes, void* data, std::int64_t bytes);

// Every process's bytes, by rank, in the first process; elsewhere nothing.
std::vector<std::string> collect(Communicator& processes, std::string_view own);

// Whether any process says so.
bool any_of(Communicator& processes, bool own);

}  // namespace etc
