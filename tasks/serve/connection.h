// One client's connection: its bytes with limits and deadlines, on a socket. No HTTP.
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
  // Owns the socket from here on. stop: a descriptor that becomes readable when the server stops.
  Connection(int socket, int stop, double read_seconds);
  // Where a request was not read to its end, lets the client read what was sent: what it still sends is read and
  // dropped, for a second at most.
  ~Connection();

  // Waits for the first byte of a request; false after so many seconds, when the client closes or the server stops.
  bool wait(double seconds);

  // From here on read() gives at most so many bytes and only until the time for a request is over; then `why` says what
  // was exceeded.
  enum class Limit { none, bytes, time };
  void begin_request(std::int64_t most_bytes);
  void allow(std::int64_t more_bytes) { left_to_read_ += more_bytes; }
  Limit exceeded() const { return exceeded_; }
  void end_request() { in_request_ = false; }  // it was read to its end

  // The next bytes, `size` at most; 0: the client closed or a limit is exceeded.
  std::size_t read(char* to, std::size_t size);
  // All of them; false: the client closed, or took nothing for the time a request has.
  bool write(const char* from, std::size_t size);

  // Whether the client is gone; thread-safe. That it has closed its sending side alone looks as if it had closed both,
  // until something is sent: to such a one the probe goes, and its system says whether somebody reads.
  bool left();
  // What left() may send, once and before anything else is written; "": nothing, and such a client stays.
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
