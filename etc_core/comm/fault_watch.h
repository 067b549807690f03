// Nobody waits for a process that is gone: what ends one process ends all, with a message that says which one and why.
//
// MPI itself does not promise that. A process that waits for another's message, from a machine that was switched off,
// waits for ever. So every process has a connection of its own (TCP) to the first one, beside MPI, and a thread that
// listens to it, while the main thread computes or waits:
//
//   rank 1 ──┐               a word every two seconds: I am here
//   rank 2 ──┼── rank 0      an error: its message, which rank 0 passes on to all the others
//   rank 3 ──┘               the connection closed without a farewell: that process was killed
//                            silence for 20 s: its machine or the network is down, or it was stopped
//
// Whatever is heard is printed with the rank's name, and the process ends.
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

  // A farewell. Every process has come to its end in good order before any of them destroys this.
  ~FaultWatch();

  // Tells everybody that this process failed; all end. From any thread.
  [[noreturn]] void end_all(const std::string& message, int code);

  static constexpr std::chrono::seconds kSilence{20};

 private:
  struct Peer {
    int rank = 0;
    int socket = -1;
    std::string received;  // not yet a whole word
    std::chrono::steady_clock::time_point heard;
    bool left = false;  // said farewell
  };

  void open_connections(Communicator& processes);
  void listen_to_all();
  void require_voices();
  void read_from(Peer& peer);
  void take_words(Peer& peer);
  void say(const Peer& peer, char kind, const std::string& text = "");
  void pass_on(int rank, const std::string& what);
  [[noreturn]] void end_because(int rank, const std::string& what);

  const Communicator& processes_;
  std::vector<Peer> peers_;  // of the first process: all others; else: the first
  std::atomic<bool> leaving_{false}, ending_{false};
  std::mutex speaking_;
  std::thread thread_;
};

}  // namespace etc
