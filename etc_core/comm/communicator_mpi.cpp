// The communicator over MPI. Needs MPI 3.
//
// A background thread drives the transfers that run beside the main thread's work, because MPI makes progress on most
// messages only while it is called. The two threads take turns in calling MPI (MPI_THREAD_SERIALIZED).
//
// Two features of MPI are avoided. Its reductions, since the order of their sums depends on the number of processes.
// And its blocking calls: they poll without pause, and if there are more processes than processors, they take processor
// time from the very process that is waited for.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "etc_core/base/error.h"
#include "etc_core/base/signals.h"
#include "etc_core/comm/device_link.h"
#include "etc_core/comm/fault_watch.h"
#include "etc_core/comm/launch.h"
#include "etc_core/comm/wait_until.h"

namespace etc {

namespace {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail("MPI", "{}: {}", call, text);
}

// Messages are split into pieces of this size, because one MPI call takes counts below 2^31.
constexpr std::int64_t kLargest = std::int64_t{1} << 30;

// Time between two polls of transfers in flight: long enough to take hardly any processor time from the computation.
constexpr std::chrono::microseconds kPause{200};

int world_rank() {
  int rank = 0;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  return rank;
}

int world_size() {
  int size = 0;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  return size;
}

// Initialises and finalises MPI; must outlive everything that uses MPI.
class MpiSession {
 public:
  MpiSession() {
    const SignalsBlocked blocked;  // of the threads that MPI starts
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_SERIALIZED) {
      fail("MPI",
           "expected a library that two threads may call in turns (thread level {}), got level {} (use an MPI that was "
           "built with threads)",
           MPI_THREAD_SERIALIZED, provided);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~MpiSession() {
    if (std::uncaught_exceptions() == 0) MPI_Finalize();  // after an error it would wait for processes that failed
  }
};

// Requests of one round of messages.
class MpiTransfer : public Transfer {
 public:
  MpiTransfer(int tag, std::span<const Outgoing> out, std::span<const Incoming> in, std::shared_ptr<const void> memory)
      : memory_(std::move(memory)) {
    for (const Incoming& message : in) {
      first_of_.push_back(requests_.size());
      in_parts(message.bytes, [&](std::int64_t first, int count, MPI_Request* request) {
        check(MPI_Irecv(static_cast<char*>(message.data) + first, count, MPI_BYTE, message.from, tag, MPI_COMM_WORLD,
                        request),
              "MPI_Irecv");
      });
    }
    for (const Outgoing& message : out) {
      const bool empty = message.data == nullptr;
      in_parts(message.bytes, [&](std::int64_t first, int count, MPI_Request* request) {
        check(MPI_Isend(empty ? nullptr : static_cast<const char*>(message.data) + first, empty ? 0 : count, MPI_BYTE,
                        message.to, tag, MPI_COMM_WORLD, request),
              "MPI_Isend");
      });
    }
    statuses_.resize(requests_.size());
  }

  // Whether all messages are sent and received.
  bool test() {
    if (!done_) {
      int done = 0;
      check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, statuses_.data()), "MPI_Testall");
      done_ = done != 0;
    }
    return done_;
  }

  bool came(std::size_t i) const override {
    int bytes = 0;
    check(MPI_Get_count(&statuses_.at(first_of_.at(i)), MPI_BYTE, &bytes), "MPI_Get_count");
    return bytes > 0;
  }

 private:
  template <typename Start>
  void in_parts(std::int64_t bytes, const Start& start) {
    for (std::int64_t first = 0; first < bytes; first += kLargest) {
      start(first, static_cast<int>(std::min(kLargest, bytes - first)), &requests_.emplace_back());
    }
  }

  std::shared_ptr<const void> memory_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<std::size_t> first_of_;  // by incoming message, its first request
  bool done_ = false;
};

class MpiCommunicator : private MpiSession, public Communicator {
 public:
  MpiCommunicator() : Communicator(world_rank(), world_size()) {
    char host[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    check(MPI_Get_processor_name(host, &length), "MPI_Get_processor_name");
    set_hosts(gather(host));
    watch_ = std::make_unique<FaultWatch>(*this);
    const SignalsBlocked blocked;
    mover_ = std::thread([this] { move_transfers(); });
  }

  // gather() is a barrier: no process leaves before all have arrived here.
  ~MpiCommunicator() override {
    gather("");
    watch_.reset();
    {
      const std::lock_guard lock(calls_);
      leaving_ = true;
    }
    changed_.notify_one();
    mover_.join();
  }

  [[noreturn]] void end_all(const std::string& message, int code) override { watch_->end_all(message, code); }
  std::unique_ptr<DeviceLink> link_devices() override { return open_device_link(*this); }

 private:
  void do_exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
    const std::shared_ptr<Transfer> all = do_start(0, out, in, nullptr);
    finish(*all);
  }

  std::shared_ptr<Transfer> do_start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                     std::shared_ptr<const void> memory) override {
    const std::lock_guard lock(calls_);
    auto transfer = std::make_shared<MpiTransfer>(tag, out, in, std::move(memory));
    moving_.push_back(transfer);
    if (moving_.size() == 1) changed_.notify_one();
    return transfer;
  }

  bool try_finish(Transfer& transfer) override {
    const std::lock_guard lock(calls_);
    return dynamic_cast<MpiTransfer&>(transfer).test();
  }

  void finish(Transfer& transfer) override {
    wait_until([&] { return try_finish(transfer); });
  }

  // The background thread: drives transfers in flight. The main thread reports errors in its own calls.
  void move_transfers() {
    std::unique_lock lock(calls_);
    while (true) {
      changed_.wait(lock, [this] { return leaving_ || !moving_.empty(); });
      if (leaving_) return;
      try {
        std::erase_if(moving_, [](const auto& transfer) { return transfer->test(); });
      } catch (const Error&) {
        moving_.clear();
      }
      lock.unlock();
      std::this_thread::sleep_for(kPause);
      lock.lock();
    }
  }

  // An MPI call by the main thread.
  template <typename Call>
  void locked(const Call& call, const char* name) {
    const std::lock_guard lock(calls_);
    check(call(), name);
  }

  void wait_for(MPI_Request& request) {
    wait_until([&] {
      int done = 0;
      locked([&] { return MPI_Test(&request, &done, MPI_STATUS_IGNORE); }, "MPI_Test");
      return done != 0;
    });
  }

  // In 64 bits, because the limit of MPI's counts can only be checked once all sizes are known.
  std::vector<std::int64_t> gather_sizes(std::int64_t own) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
    MPI_Request request{};
    locked([&] { return MPI_Iallgather(&own, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, MPI_COMM_WORLD, &request); },
           "MPI_Iallgather");
    wait_for(request);
    return all;
  }

  std::vector<std::string> do_gather(std::string_view own) override {
    const std::vector<std::int64_t> sizes = gather_sizes(std::ssize(own));  // by rank
    const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    if (total > INT_MAX) fail("communicator", "gather: expected less than 2 GB in all, got {} bytes", total);
    std::vector<std::string> all(sizes.size());
    if (total == 0) return all;
    const std::vector<int> lengths(sizes.begin(), sizes.end());
    std::vector<int> places(sizes.size());
    std::exclusive_scan(lengths.begin(), lengths.end(), places.begin(), 0);
    std::string joined(static_cast<std::size_t>(total), '\0');
    MPI_Request request{};
    locked(
        [&] {
          return MPI_Iallgatherv(own.data(), static_cast<int>(own.size()), MPI_BYTE, joined.data(), lengths.data(),
                                 places.data(), MPI_BYTE, MPI_COMM_WORLD, &request);
        },
        "MPI_Iallgatherv");
    wait_for(request);
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      all[rank] = joined.substr(static_cast<std::size_t>(places[rank]), static_cast<std::size_t>(lengths[rank]));
    }
    return all;
  }

  std::unique_ptr<FaultWatch> watch_;
  std::mutex calls_;  // guards MPI calls and the members below
  std::condition_variable changed_;
  std::vector<std::shared_ptr<MpiTransfer>> moving_;
  bool leaving_ = false;
  std::thread mover_;
};

}  // namespace

std::unique_ptr<Communicator> join_processes() {
  try {
    return std::make_unique<MpiCommunicator>();
  } catch (const Error& error) {
    // No fault watch exists yet that could tell the other processes.
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
    throw;
  }
}

}  // namespace etc
