#include "etc_core/comm/fault_watch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <sstream>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/thread_processes.h"

using namespace etc;

namespace {

int connect_to_first(std::uint16_t port) {
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = ::connect(socket, reinterpret_cast<struct sockaddr*>(&address), sizeof address) == 0;
  return connected ? socket : -1;
}

bool send_all(int socket, const void* bytes, std::size_t size) {
  return ::send(socket, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

// Connects like another process's watch, after unrelated connections that send no or a wrong greeting.
void join_behind_strangers(Communicator& processes) {
  std::istringstream words(from_first(processes, ""));
  struct {
    std::uint64_t run = 0;
    std::int32_t rank = 1;
  } greeting;
  std::uint16_t port = 0;
  words >> greeting.run >> port;
  std::vector<int> strangers;
  for (int i = 0; i < 3; ++i) strangers.push_back(connect_to_first(port));
  bool sound = send_all(strangers[1], "GET", 3) && send_all(strangers[2], "GET / HTTP/1.1\r\n\r\n", 18);
  const int socket = connect_to_first(port);
  sound = sound && send_all(socket, &greeting, sizeof greeting);
  char word = 0;
  while (sound && word != 'b') sound = ::recv(socket, &word, 1, 0) == 1;  // until the goodbye message
  for (const int stranger : strangers) ::close(stranger);
  ::close(socket);
  if (!sound) throw std::runtime_error("the first process has not taken up this one");
}

}  // namespace

TEST_CASE("strangers that say nothing, or not all, keep no process from being heard", "[comm]") {
  const auto body = [](Communicator& processes) {
    if (processes.first()) {
      const FaultWatch watch(processes);
    } else {
      join_behind_strangers(processes);
    }
  };
  CHECK_NOTHROW(test::run_processes(2, body));
}
