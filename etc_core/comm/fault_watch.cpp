#include "etc_core/comm/fault_watch.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>

#include "etc_core/base/error.h"
#include "etc_core/base/signals.h"

namespace etc {

namespace {

using Clock = std::chrono::steady_clock;

// Kinds of messages. A message consists of its kind, the length of its text (4 bytes in host byte order) and the text.
constexpr char kHeartbeat = 'h', kGoodbye = 'b', kFailure = 'f';
constexpr std::size_t kHeaderSize = 1 + sizeof(std::uint32_t);
constexpr std::chrono::seconds kHeartbeatInterval{2}, kConnectTimeout{30}, kGreetingTimeout{2};
constexpr int kKilledCode = 1;              // exit code of all after a process that could not report one
constexpr std::size_t kMostPending = 1024;  // accepted connections whose greeting is not complete yet

// The first message of a connection: the run it belongs to, and the rank of the process.
struct Greeting {
  std::uint64_t run = 0;
  std::int32_t rank = 0;
};

class Socket : NotCopied {
 public:
  explicit Socket(int number) : number_(number) {
    if (number < 0) fail("processes", "no socket: {}", std::strerror(errno));
  }
  ~Socket() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Addresses at which other processes may reach this machine; 127.0.0.1 is first.
std::string own_addresses() {
  std::string others = "127.0.0.1";
  struct ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return others;
  for (const struct ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    if ((each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const struct sockaddr_in*>(each->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr) others += std::string(" ") + text;
  }
  ::freeifaddrs(list);
  return others;
}

// Whether the socket has one of these events before the deadline.
bool has_event(int socket, short events, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  struct pollfd waiting {
    socket, events, 0
  };
  return left > 0 && ::poll(&waiting, 1, static_cast<int>(left)) == 1;
}

// A listening socket on a free port.
int listen_anywhere(int processes, std::uint16_t& port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  if (::bind(socket.number(), reinterpret_cast<struct sockaddr*>(&address), size) != 0 ||
      ::listen(socket.number(), processes) != 0 ||
      ::getsockname(socket.number(), reinterpret_cast<struct sockaddr*>(&address), &size) != 0) {
    fail("processes", "cannot listen for the other processes: {}", std::strerror(errno));
  }
  port = ntohs(address.sin_port);
  return socket.release();
}

// A socket connected to the host and port; -1 if the connection fails.
int connect_to(const std::string& host, std::uint16_t port) {
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return -1;
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int begun = ::connect(socket.number(), reinterpret_cast<struct sockaddr*>(&address), sizeof address);
  if (begun != 0 && errno != EINPROGRESS) return -1;
  if (begun != 0 && !has_event(socket.number(), POLLOUT, Clock::now() + std::chrono::seconds(3))) return -1;
  int fault = 0;
  socklen_t size = sizeof fault;
  ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &fault, &size);
  return fault == 0 ? socket.release() : -1;
}

// An accepted connection whose greeting is not complete yet, so that its run is unknown.
struct PendingConnection {
  std::unique_ptr<Socket> socket;
  Clock::time_point until;  // deadline for the greeting; then the connection is closed
  Greeting greeting;
  std::size_t got = 0;  // received bytes of the greeting

  // Reads more of the greeting. False: the connection is closed, timed out, or belongs to another run.
  bool receive(std::uint64_t run) {
    char* const bytes = reinterpret_cast<char*>(&greeting);
    const ssize_t count = ::recv(socket->number(), bytes + got, sizeof greeting - got, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
    got += count > 0 ? static_cast<std::size_t>(count) : 0;
    return is_complete() ? greeting.run == run : Clock::now() < until;
  }
  bool is_complete() const { return got == sizeof greeting; }
};

// The next connection that belongs to the run; without a socket if none came before the deadline. All pending
// connections are polled together, so one that does not belong to the run, or sends nothing, does not delay the others.
PendingConnection accept_of_run(int listening, std::uint64_t run, std::vector<PendingConnection>& pending,
                                Clock::time_point deadline) {
  while (Clock::now() < deadline) {
    std::vector<struct pollfd> waiting{{listening, POLLIN, 0}};
    for (const PendingConnection& connection : pending) waiting.push_back({connection.socket->number(), POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), 50);
    if (const int number = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC); number >= 0) {
      if (pending.size() == kMostPending) pending.erase(pending.begin());
      pending.push_back({std::make_unique<Socket>(number), Clock::now() + kGreetingTimeout, {}, 0});
    }
    for (auto connection = pending.begin(); connection != pending.end();) {
      if (!connection->receive(run)) {
        connection = pending.erase(connection);
      } else if (connection->is_complete()) {
        PendingConnection known = std::move(*connection);
        pending.erase(connection);
        return known;
      } else {
        ++connection;
      }
    }
  }
  return {};
}

void print_line(const std::string& text) {
  const std::string line = text + "\n";  // one write per line, so that lines of several processes do not mix
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

FaultWatch::FaultWatch(Communicator& processes) : processes_(processes) {
  open_connections(processes);
  const auto now = Clock::now();
  for (Peer& peer : peers_) peer.heard = now;
  const SignalsBlocked blocked;  // inherited by the thread
  thread_ = std::thread([this] { watch_all(); });
}

void FaultWatch::open_connections(Communicator& processes) {
  const int rank = processes.rank(), size = processes.size();
  std::uint16_t port = 0;
  std::uint64_t run = 0;
  int listening = -1;
  std::string offer;  // the run, the port and the addresses
  if (rank == 0) {
    std::random_device random;
    run = (std::uint64_t{random()} << 32) | random();
    listening = listen_anywhere(size, port);
    offer = fmt::format("{} {} {}", run, port, own_addresses());
  }
  std::istringstream fields(from_first(processes, offer));
  fields >> run >> port;
  const auto deadline = Clock::now() + kConnectTimeout;
  if (rank == 0) {
    const Socket listening_socket(listening);
    std::vector<PendingConnection> pending;
    while (std::ssize(peers_) < size - 1) {
      const PendingConnection connection = accept_of_run(listening, run, pending, deadline);
      if (connection.socket == nullptr) {
        fail("processes", "{} of {} processes reached {} in {} s (is there a firewall between the machines?)",
             peers_.size(), size - 1, processes.name_of(0), kConnectTimeout.count());
      }
      peers_.push_back({connection.greeting.rank, connection.socket->release(), "", {}, false});
    }
    return;
  }
  int socket = -1;
  for (std::string address; socket < 0 && fields >> address;) {
    const bool loopback = address.starts_with("127.");
    // 127.0.0.1 always means this machine. If rank 0 is on another one, no process or an unrelated one listens there.
    if (loopback && processes.host_of(rank) != processes.host_of(0)) continue;
    socket = connect_to(address, port);
  }
  if (socket < 0) fail("processes", "{} cannot reach {}", processes.name_of(rank), processes.name_of(0));
  const Greeting greeting{run, rank};
  if (::send(socket, &greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting) {
    ::close(socket);
    fail("processes", "{} cannot speak to {}", processes.name_of(rank), processes.name_of(0));
  }
  peers_.push_back({0, socket, "", {}, false});
}

FaultWatch::~FaultWatch() {
  leaving_ = true;
  for (const Peer& peer : peers_) send_message(peer, kGoodbye);
  thread_.join();
  for (const Peer& peer : peers_) ::close(peer.socket);
}

void FaultWatch::end_all(const std::string& message, int code) {
  ending_ = true;
  print_line(fmt::format("{}: {}", processes_.name_of(processes_.rank()), message));
  report_failure({processes_.rank(), code, "failed: " + message});
  std::fflush(stdout);
  // The launcher ends the other processes as soon as one has ended; give them time to print the cause first.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::_Exit(code);
}

void FaultWatch::watch_all() {
  auto last_sent = Clock::now();
  while (!leaving_) {
    std::vector<struct pollfd> waiting;
    for (const Peer& peer : peers_) waiting.push_back({peer.left ? -1 : peer.socket, POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), 50);
    const auto now = Clock::now();
    // If this process was itself stopped for a while, it cannot tell whether the peers were silent: restart timeouts.
    if (now - last_sent > 2 * kHeartbeatInterval) {
      for (Peer& peer : peers_) peer.heard = now;
    }
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (waiting[i].revents != 0) read_from(peers_[i]);
    }
    if (now - last_sent < kHeartbeatInterval) continue;
    for (const Peer& peer : peers_) send_message(peer, kHeartbeat);
    require_heartbeats();
    last_sent = now;
  }
}

void FaultWatch::require_heartbeats() {
  for (const Peer& peer : peers_) {
    if (peer.left || Clock::now() - peer.heard < kSilence) continue;
    end_after_failure({peer.rank, kKilledCode,
                       fmt::format("has been silent for {} s: its machine or the network is down, or the process "
                                   "was stopped",
                                   kSilence.count())});
  }
}

void FaultWatch::read_from(Peer& peer) {
  char block[4096];
  const ssize_t got = ::recv(peer.socket, block, sizeof block, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    if (peer.left || leaving_) {
      peer.left = true;
      return;
    }
    end_after_failure({peer.rank, kKilledCode,
                       "is gone: its process ended without reporting an error (killed, perhaps out of memory)"});
  }
  peer.heard = Clock::now();
  peer.received.append(block, static_cast<std::size_t>(got));
  take_messages(peer);
}

void FaultWatch::take_messages(Peer& peer) {
  while (peer.received.size() >= kHeaderSize) {
    std::uint32_t length = 0;
    std::memcpy(&length, peer.received.data() + 1, sizeof length);
    if (peer.received.size() < kHeaderSize + length) return;
    const char kind = peer.received[0];
    const std::string text = peer.received.substr(kHeaderSize, length);
    peer.received.erase(0, kHeaderSize + length);
    if (kind == kGoodbye) peer.left = true;
    if (kind != kFailure) continue;
    Failure failure;
    std::istringstream fields(text);
    fields >> failure.rank >> failure.code;
    std::getline(fields.ignore(), failure.what, '\0');  // the message may have several lines
    end_after_failure(failure);
  }
}

// Errors of send() are ignored: the side that reads detects a broken connection.
void FaultWatch::send_message(const Peer& peer, char kind, const std::string& text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string message(kHeaderSize, kind);
  std::memcpy(message.data() + 1, &length, sizeof length);
  message += text;
  const std::lock_guard lock(sending_);
  [[maybe_unused]] const ssize_t sent =
      ::send(peer.socket, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Sends a failure report: rank 0 sends it to all others except the failed one, any other process to rank 0.
void FaultWatch::report_failure(const Failure& failure) {
  for (const Peer& peer : peers_) {
    if (peer.rank == failure.rank || peer.left) continue;
    send_message(peer, kFailure, fmt::format("{} {} {}", failure.rank, failure.code, failure.what));
  }
}

void FaultWatch::end_after_failure(const Failure& failure) {
  if (ending_.exchange(true)) {
    std::this_thread::sleep_for(std::chrono::hours(1));  // the main thread is ending the process
  }
  if (processes_.first()) report_failure(failure);
  print_line(fmt::format("{} ends: {} {}", processes_.name_of(processes_.rank()), processes_.name_of(failure.rank),
                         failure.what));
  if (processes_.first()) std::this_thread::sleep_for(std::chrono::milliseconds(100));  // let the others print it, too
  std::_Exit(failure.code);
}

}  // namespace etc
