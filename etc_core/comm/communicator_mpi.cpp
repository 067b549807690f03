// Processes that MPI started, with MPI carrying the bytes. Needs MPI 3.
//
// Two things of MPI are avoided. Its reductions, since the order of their sums depends on the number of processes. And its
// blocking calls: they poll without pause, which takes the processor from whoever is waited for when there are more
// processes than processors.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <exception>
#include <thread>

#include "etc_core/base/error.h"
#include "etc_core/base/signals.h"
#include "etc_core/comm/fault_watch.h"
#include "etc_core/comm/launch.h"

namespace etc {

namespace {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail("MPI", "{}: {}", call, text);
}

// One call of MPI takes counts below 2^31.
constexpr std::int64_t kLargest = std::int64_t{1} << 30;

// Until all are done: at first at once, then looking up now and then, so that others have the processor.
void wait_for(std::vector<MPI_Request>& requests) {
  using Clock = std::chrono::steady_clock;
  const auto patient = Clock::now() + std::chrono::milliseconds(20);
  while (true) {
    int done = 0;
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    if (done != 0) return;
    if (Clock::now() < patient) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

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

// MPI from its beginning to its end, which must enclose everything that uses it.
class MpiSession {
 public:
  MpiSession() {
    const SignalsBlocked blocked;  // of the threads that MPI starts
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~MpiSession() {
    if (std::uncaught_exceptions() == 0) MPI_Finalize();  // else it would wait for processes that do not come
  }
};

class MpiCommunicator : private MpiSession, public Communicator {
 public:
  MpiCommunicator() : Communicator(world_rank(), world_size()) {
    char host[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    check(MPI_Get_processor_name(host, &length), "MPI_Get_processor_name");
    set_hosts(gather(host));
    watch_ = std::make_unique<FaultWatch>(*this);
  }

  // Everybody is here before anybody leaves.
  ~MpiCommunicator() override {
    gather("");
    watch_.reset();
  }

  [[noreturn]] void end_all(const std::string& message, int code) override { watch_->end_all(message, code); }

 private:
  void do_exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
    std::vector<MPI_Request> requests;
    const auto in_parts = [&](std::int64_t bytes, const auto& start) {
      for (std::int64_t first = 0; first < bytes; first += kLargest) {
        start(first, static_cast<int>(std::min(kLargest, bytes - first)), &requests.emplace_back());
      }
    };
    for (const Incoming& message : in) {
      in_parts(message.bytes, [&](std::int64_t first, int count, MPI_Request* request) {
        check(MPI_Irecv(static_cast<char*>(message.data) + first, count, MPI_BYTE, message.from, 0, MPI_COMM_WORLD,
                        request),
              "MPI_Irecv");
      });
    }
    for (const Outgoing& message : out) {
      in_parts(message.bytes, [&](std::int64_t first, int count, MPI_Request* request) {
        check(MPI_Isend(static_cast<const char*>(message.data) + first, count, MPI_BYTE, message.to, 0, MPI_COMM_WORLD,
                        request),
              "MPI_Isend");
      });
    }
    wait_for(requests);
  }

  std::vector<std::string> do_gather(std::string_view own) override {
    const auto processes = static_cast<std::size_t>(size());
    const int length = static_cast<int>(own.size());
    std::vector<int> lengths(processes), places(processes);
    std::vector<MPI_Request> request(1);
    check(MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD, request.data()),
          "MPI_Iallgather");
    wait_for(request);
    std::int64_t total = 0;
    for (std::size_t rank = 0; rank < processes; ++rank) {
      places[rank] = static_cast<int>(total);
      total += lengths[rank];
    }
    if (total > INT_MAX) fail("communicator", "gather: expected less than 2 GB in all, got {} bytes", total);
    std::vector<std::string> all(processes);
    if (total == 0) return all;
    std::string joined(static_cast<std::size_t>(total), '\0');
    check(MPI_Iallgatherv(own.data(), length, MPI_BYTE, joined.data(), lengths.data(), places.data(), MPI_BYTE,
                          MPI_COMM_WORLD, request.data()),
          "MPI_Iallgatherv");
    wait_for(request);
    for (std::size_t rank = 0; rank < processes; ++rank) {
      all[rank] = joined.substr(static_cast<std::size_t>(places[rank]), static_cast<std::size_t>(lengths[rank]));
    }
    return all;
  }

  std::unique_ptr<FaultWatch> watch_;
};

}  // namespace

std::unique_ptr<Communicator> join_processes() {
  try {
    return std::make_unique<MpiCommunicator>();
  } catch (const Error& error) {
    // There is no watch yet that could tell the others.
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
    throw;
  }
}

}  // namespace etc
