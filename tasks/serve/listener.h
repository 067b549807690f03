// The listening socket: accepts clients and hands each to a thread of its own. No HTTP.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc::serve {

class Listener : NotCopied {
 public:
  using Serve = std::function<void(int socket)>;
  using Refuse = std::function<void(int socket, const std::string& why)>;

  // serve: takes ownership of the socket; called on a worker thread that is reused for later connections. At most
  // `connections` at a time; for one more, or if no thread can be created, `refuse` gets the socket, which is closed
  // afterwards.
  Listener(std::int64_t connections, Serve serve, Refuse refuse);
  ~Listener();

  // As HttpServer's functions.
  int listen(const std::string& host, int port);
  void run();
  void stop();

  int stopped_descriptor() const { return stop_[0]; }  // readable once stop() was called
  bool stopping() const { return stopping_; }
  std::int64_t connections() const { return open_; }

 private:
  void hand_over(int socket);
  bool has_thread_for_waiting();
  void reject(int socket, const std::string& why) const;
  void work();

  std::int64_t most_;
  Serve serve_;
  Refuse refuse_;
  int socket_ = -1, stop_[2] = {-1, -1};
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> open_{0};  // connections that have a thread or wait for one

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<int> waiting_;
  std::int64_t idle_ = 0;  // threads without a connection
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace etc::serve
