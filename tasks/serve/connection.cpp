#include "tasks/serve/connection.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace etc::serve {

namespace {

constexpr std::size_t kBufferBytes = 16384;
constexpr std::int64_t kDroppedBytes = std::int64_t{16} << 20;  // read and dropped at the end
constexpr double kDropSeconds = 1;

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Milliseconds until the deadline, at least 0, for poll().
int until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

// Waits for these events; 0 after the deadline.
short wait_for(int socket, short events, Clock::time_point deadline) {
  while (true) {
    pollfd one{socket, events, 0};
    const int ready = ::poll(&one, 1, until(deadline));
    if (ready > 0) return one.revents;
    if (ready == 0 || errno != EINTR) return 0;
  }
}

}  // namespace

Connection::Connection(int socket, int stop, double read_seconds)
    : socket_(socket), stop_(stop), read_seconds_(read_seconds), deadline_(Clock::now()) {
  const int on = 1;  // answers are written whole, so delaying packets gains nothing
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Closing a socket with unread bytes resets the connection, and the client may lose the answer with the reason.
Connection::~Connection() {
  ::shutdown(socket_, SHUT_WR);
  char dropped[kBufferBytes];
  const Clock::time_point deadline = after(kDropSeconds);
  for (std::int64_t bytes = 0; in_request_ && bytes < kDroppedBytes && wait_for(socket_, POLLIN, deadline) != 0;) {
    const ssize_t got = ::recv(socket_, dropped, sizeof dropped, 0);
    if (got <= 0) break;
    bytes += got;
  }
  ::close(socket_);
}

bool Connection::wait(double seconds) {
  if (taken_ < buffer_.size()) return true;  // received together with the previous request
  const Clock::time_point deadline = after(seconds);
  while (true) {
    pollfd both[2] = {{socket_, POLLIN, 0}, {stop_, POLLIN, 0}};
    const int ready = ::poll(both, 2, until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    // A request that has arrived is answered even when the server stops.
    if (both[0].revents != 0) {
      char first;
      return ::recv(socket_, &first, 1, MSG_PEEK) > 0;
    }
    return false;
  }
}

void Connection::begin_request(std::int64_t most_bytes) {
  left_to_read_ = most_bytes;
  deadline_ = after(read_seconds_);
  exceeded_ = Limit::none;
  in_request_ = true;
}

bool Connection::receive() {
  if (taken_ < buffer_.size()) return true;
  buffer_.resize(kBufferBytes);
  taken_ = 0;
  ssize_t got = 0;
  do {
    if (wait_for(socket_, POLLIN, deadline_) == 0) {
      exceeded_ = Limit::time;
      break;
    }
    got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return got > 0;
}

std::size_t Connection::read(char* to, std::size_t size) {
  // A client that sends a byte now and then would otherwise never time out in recv().
  if (Clock::now() > deadline_) exceeded_ = Limit::time;
  if (left_to_read_ <= 0) exceeded_ = Limit::bytes;
  if (exceeded_ != Limit::none || !receive()) return 0;
  const std::size_t count = std::min({size, buffer_.size() - taken_, static_cast<std::size_t>(left_to_read_)});
  std::copy_n(buffer_.data() + taken_, count, to);
  taken_ += count;
  left_to_read_ -= static_cast<std::int64_t>(count);
  return count;
}

bool Connection::write(const char* from, std::size_t size) {
  probe_with("");
  while (size > 0) {
    if (wait_for(socket_, POLLOUT, after(read_seconds_)) == 0) return false;
    const ssize_t sent = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return false;
    from += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

short Connection::events() const {
  pollfd one{socket_, POLLRDHUP, 0};
  return ::poll(&one, 1, 0) > 0 ? one.revents : short{0};
}

void Connection::probe_with(const std::string& bytes) {
  const std::lock_guard lock(sending_);
  probe_ = bytes;
}

bool Connection::left() {
  constexpr short kGone = POLLHUP | POLLERR;
  const short seen = events();
  if ((seen & kGone) != 0 || (seen & POLLRDHUP) == 0) return (seen & kGone) != 0;
  {
    const std::lock_guard lock(sending_);
    int unread = 0;  // unsent bytes serve as the probe; a further one might be sent in part
    if (!probe_.empty() && ::ioctl(socket_, SIOCOUTQ, &unread) == 0 && unread == 0)
      ::send(socket_, probe_.data(), probe_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    probe_.clear();
  }
  return (events() & kGone) != 0;  // a local client has sent a reset by now; others are seen next time
}

}  // namespace etc::serve
