// Communication between the processes of one run: ranks, and bytes sent from one process to another.
//
// The invariant to remember: nothing here adds numbers. A communication library adds floats in an order that depends on
// the number of processes. Therefore only bytes are sent, and the receiver adds in an order that does not depend on the
// number of processes (optim/tree_sum.h). Only files of this folder include communication libraries.
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

// Messages in flight while this process does something else. If the object is destroyed before the transfer is done,
// the transfer continues and its memory stays allocated.
class Transfer : NotCopied {
 public:
  virtual ~Transfer() = default;
  // Whether incoming message i, which has arrived, had content.
  virtual bool came(std::size_t i) const = 0;
};

class DeviceLink;  // device_link.h

// Calls are collective: every process makes the same ones in the same order, from one thread at a time. A process that
// fails while others wait for it must tell them, with end_all().
class Communicator : NotCopied {
 public:
  virtual ~Communicator() = default;

  int rank() const { return rank_; }  // 0 … size()-1
  int size() const { return size_; }
  bool first() const { return rank_ == 0; }  // the process that writes files and prints messages

  // Exchanges all messages of this process in one round; returns when all are sent and received. Messages from one
  // process to another arrive in the order of their lists; both sides must give the same sizes. A process does not send
  // to itself.
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in);

  // Starts a round that proceeds in the background, beside other calls; several may be in flight. Messages of one tag
  // (1 … 32767) from one process to another arrive in the order in which they were started; the receiver may start its
  // part before or after the sender. Data of an outgoing message may be null: it is then sent without content, and the
  // receiver, which expects the full size, learns this from came(). memory: owner of the messages' data, which must not
  // be touched until the round is done.
  std::shared_ptr<Transfer> start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                  std::shared_ptr<const void> memory);
  bool done(Transfer& transfer) { return try_finish(transfer); }
  void wait(Transfer& transfer);

  // Gathers the bytes of every process, by rank, in every process.
  std::vector<std::string> gather(std::string_view own);

  // "rank 2 of 4 on b", for messages; the machine's own name.
  std::string name_of(int rank) const;
  const std::string& host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }

  // Ends all processes with this one's message and exit code. Does not return, and runs no destructors: partly written
  // files stay under their temporary names.
  [[noreturn]] virtual void end_all(const std::string& message, int code) = 0;

  // A link for messages from device to device, if every process has a device of its own and NCCL is available. Else
  // null in all processes.
  virtual std::unique_ptr<DeviceLink> link_devices();

  // Payload that this process has sent so far, and the time it has spent in calls, including waiting for others.
  std::int64_t bytes_sent() const { return bytes_sent_; }
  double seconds() const { return seconds_; }
  // Adds traffic that bypassed the communicator (device_rounds.h) to both counters.
  void count_elsewhere(std::int64_t bytes, double seconds) {
    bytes_sent_ += bytes;
    seconds_ += seconds;
  }

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size), hosts_(static_cast<std::size_t>(size), "this machine") {}

  // The machines' names by rank. Derived classes call this before anything else.
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

// The communicator of a single process.
Communicator& one_process();

// The first process's bytes, in every process.
std::string from_first(Communicator& processes, std::string_view own);

// Broadcasts the first process's `bytes` at `data` to `data` of every process along a binomial tree: ceil(log2(size()))
// rounds.
void broadcast(Communicator& processes, void* data, std::int64_t bytes);

// Every process's bytes, by rank, in the first process; an empty list in the others.
std::vector<std::string> collect(Communicator& processes, std::string_view own);

// Whether `own` is true in any process.
bool any_of(Communicator& processes, bool own);

}  // namespace etc
