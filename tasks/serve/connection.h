// One client's connection: a socket read and written with limits and deadlines. No HTTP.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "etc_core/base/not_copied.h"

namespace etc::serve {

using Clock = std::chrono::steady_clock;

class Connection : NotCopied {
 public:
  // Takes ownership of the socket. stop: a descriptor that becomes readable when the server stops.
  Connection(int socket, int stop, double read_seconds);
  // If a request was not read to its end, gives the client time to read the answer: further input is read and dropped
  // for a second at most.
  ~Connection();

  // Waits for the first byte of a request; false after this many seconds, when the client closes or when the server
  // stops.
  bool wait(double seconds);

  // From here on read() returns at most this many bytes, and only until the time for a request is over; after that
  // exceeded() tells which limit was exceeded.
  enum class Limit { none, bytes, time };
  void begin_request(std::int64_t most_bytes);
  void allow(std::int64_t more_bytes) { left_to_read_ += more_bytes; }
  Limit exceeded() const { return exceeded_; }
  void end_request() { in_request_ = false; }  // the request was read to its end

  // Reads the next bytes, at most `size`; 0: the client closed or a limit is exceeded.
  std::size_t read(char* to, std::size_t size);
  // Writes all bytes; false: the client closed, or accepted nothing for the time a request has.
  bool write(const char* from, std::size_t size);

  // Whether the client has disconnected; thread-safe. A client that closed only its sending side looks as if it had
  // closed both until something is sent: then the probe is sent to it, and its system's reaction tells whether it still
  // reads.
  bool left();
  // What left() may send, once and before anything else is written; "": nothing, and a half-closed client counts as
  // connected.
  void probe_with(const std::string& bytes);
  int socket() const { return socket_; }

 private:
  bool receive();  // at least one byte into buffer_
  short events() const;

  int socket_, stop_;
  double read_seconds_;
  Clock::time_point deadline_;
  std::int64_t left_to_read_ = 0;
  Limit exceeded_ = Limit::none;
  bool in_request_ = false;
  std::string buffer_;
  std::size_t taken_ = 0;  // of buffer_
  std::mutex sending_;
  std::string probe_;
};

}  // namespace etc::serve
