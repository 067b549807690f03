// Failure detection: if one process fails, all processes end, with a message that names the rank and the cause.
//
// MPI itself does not guarantee that: a process that expects a message from a machine that was switched off waits for
// ever. Therefore every process has a TCP connection to the first one, beside MPI, and a thread that listens to it
// while the main thread computes or waits:
//
//   rank 1 ──┐               a heartbeat every two seconds
//   rank 2 ──┼── rank 0      a failure: its error message, which rank 0 passes on to all the others
//   rank 3 ──┘               the connection closed without a goodbye message: that process was killed
//                            no message for 20 s: its machine or the network is down, or it was stopped
//
// A failure is printed with the rank's name, and the process ends, with the exit code of the failed one.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "etc_core/comm/communicator.h"

namespace etc {

class FaultWatch : NotCopied {
 public:
  // Every process makes its own at the same time. Throws Error when a process cannot reach the first one.
  explicit FaultWatch(Communicator& processes);

  // Sends a goodbye message. No process may destroy its object before all have finished normally.
  ~FaultWatch();

  // Tells all other processes that this one failed; all end. May be called from any thread.
  [[noreturn]] void end_all(const std::string& message, int code);

  static constexpr std::chrono::seconds kSilence{20};

 private:
  struct Peer {
    int rank = 0;
    int socket = -1;
    std::string received;  // bytes of an incomplete message
    std::chrono::steady_clock::time_point heard;
    bool left = false;  // has sent its goodbye message
  };

  struct Failure {
    int rank = 0;
    int code = 0;  // of all processes' exit: the launcher returns that of whichever ends first
    std::string what;
  };

  void open_connections(Communicator& processes);
  void watch_all();
  void require_heartbeats();
  void read_from(Peer& peer);
  void take_messages(Peer& peer);
  void send_message(const Peer& peer, char kind, const std::string& text = "");
  void report_failure(const Failure& failure);
  [[noreturn]] void end_after_failure(const Failure& failure);

  const Communicator& processes_;
  std::vector<Peer> peers_;  // in the first process: all others; else: only the first
  std::atomic<bool> leaving_{false}, ending_{false};
  std::mutex sending_;
  std::thread thread_;
};

}  // namespace etc
