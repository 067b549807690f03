#include "tasks/serve/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>

#include "etc_core/base/error.h"
#include "etc_core/base/signals.h"

namespace etc::serve {

namespace {

constexpr int kBacklog = 1024;
constexpr auto kPauseBeforeNext = std::chrono::milliseconds(20);  // when the system has no free descriptor

// A listening socket at this address, or -1 with errno.
int listening_socket(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (socket < 0) return -1;
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket, address.ai_addr, address.ai_addrlen) == 0 && ::listen(socket, kBacklog) == 0) return socket;
  const int reason = errno;
  ::close(socket);
  errno = reason;
  return -1;
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  char port[NI_MAXSERV] = "0";
  ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, nullptr, 0, port, sizeof port, NI_NUMERICSERV);
  return std::atoi(port);
}

}  // namespace

Listener::Listener(std::int64_t connections, Serve serve, Refuse refuse)
    : most_(connections), serve_(std::move(serve)), refuse_(std::move(refuse)) {
  if (::pipe2(stop_, O_CLOEXEC) != 0) fail("etc serve", "no pipe: {}", std::strerror(errno));
}

Listener::~Listener() {
  for (const int descriptor : {socket_, stop_[0], stop_[1]}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

int Listener::listen(const std::string& host, int port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const int unknown = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (unknown != 0) fail_usage("etc serve", "--host {}: {}", host, ::gai_strerror(unknown));
  for (const addrinfo* address = found; address != nullptr && socket_ < 0; address = address->ai_next) {
    socket_ = listening_socket(*address);
  }
  const int reason = errno;
  ::freeaddrinfo(found);
  if (socket_ < 0) fail("etc serve", "cannot listen at {} port {}: {}", host, port, std::strerror(reason));
  return port_of(socket_);
}

void Listener::run() {
  const SignalsBlocked for_threads;
  while (!stopping_) {
    pollfd both[2] = {{socket_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    if (::poll(both, 2, -1) < 0 || both[0].revents == 0) continue;
    const int client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) {
      hand_over(client);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      std::this_thread::sleep_for(kPauseBeforeNext);  // any other error concerns only this client
    }
  }
  ::close(socket_);  // later connections are refused by the system
  socket_ = -1;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Listener::stop() {
  stopping_ = true;
  [[maybe_unused]] const ssize_t written = ::write(stop_[1], "s", 1);
}

void Listener::hand_over(int socket) {
  const std::lock_guard lock(mutex_);
  if (open_ >= most_)
    return reject(socket, fmt::format("the server has its most connections, {}: try again later", most_));
  waiting_.push_back(socket);
  if (has_thread_for_waiting()) {
    ++open_;
  } else {
    waiting_.pop_back();
    reject(socket, "the system gives the server no thread for one more connection: try again later");
  }
}

// Whether each waiting connection has a thread: an idle one, or a new one.
bool Listener::has_thread_for_waiting() {
  if (idle_ >= std::ssize(waiting_)) {
    arrived_.notify_one();
    return true;
  }
  try {
    threads_.emplace_back([this] { work(); });
    return true;
  } catch (const std::exception&) {  // the process limit of the user, or memory
    return false;
  }
}

void Listener::reject(int socket, const std::string& why) const {
  refuse_(socket, why);
  ::close(socket);
}

void Listener::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    arrived_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    const int socket = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    serve_(socket);
    lock.lock();
    --open_;
  }
}

}  // namespace etc::serve
