// A client with one connection that sends the given bytes, valid or not.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "etc_core/base/not_copied.h"

namespace etc::test {

struct HttpReply {
  int status = 0;  // 0: none came
  std::string head, body;
};

class HttpClient : NotCopied {
 public:
  explicit HttpClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~HttpClient() { ::close(socket_); }

  bool connected() const { return connected_; }

  void send(const std::string& bytes) const {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server has closed, perhaps because a limit was exceeded
      at += static_cast<std::size_t>(sent);
    }
  }
  void end_sending() const { ::shutdown(socket_, SHUT_WR); }

  // Everything received until the server closes; "" after this many milliseconds of silence.
  std::string read_all(int milliseconds = 10000) const {
    std::string all, block(65536, '\0');
    while (true) {
      pollfd one{socket_, POLLIN, 0};
      if (::poll(&one, 1, milliseconds) <= 0) return "";
      const ssize_t got = ::recv(socket_, block.data(), block.size(), 0);
      if (got <= 0) return all;
      all.append(block, 0, static_cast<std::size_t>(got));
    }
  }

  // The next answer on a connection that stays open. For a chunked answer the text of the chunks.
  HttpReply read_one() {
    HttpReply reply;
    while (buffer_.find("\r\n\r\n") == std::string::npos) {
      if (!receive()) return reply;
    }
    const std::size_t end = buffer_.find("\r\n\r\n") + 4;
    reply.head = buffer_.substr(0, end);
    buffer_.erase(0, end);
    reply.status = std::stoi(reply.head.substr(reply.head.find(' ')));
    if (reply.head.find("Transfer-Encoding: chunked") != std::string::npos) {
      while (true) {
        const std::string size = line();
        const std::size_t bytes = size.empty() ? 0 : std::stoul(size, nullptr, 16);
        while (buffer_.size() < bytes + 2 && receive()) {
        }
        reply.body += buffer_.substr(0, bytes);
        buffer_.erase(0, bytes + 2);
        if (bytes == 0) return reply;
      }
    }
    const std::size_t at = reply.head.find("Content-Length: ");
    const std::size_t bytes = at == std::string::npos ? 0 : std::stoul(reply.head.substr(at + 16));
    while (buffer_.size() < bytes && receive()) {
    }
    reply.body = buffer_.substr(0, bytes);
    buffer_.erase(0, bytes);
    return reply;
  }

  HttpReply ask(const std::string& method, const std::string& path, const std::string& body = "",
                const std::string& more_headers = "Content-Type: application/json\r\n") {
    send(request(method, path, body, more_headers));
    return read_one();
  }

  static std::string request(const std::string& method, const std::string& path, const std::string& body,
                             const std::string& more_headers = "Content-Type: application/json\r\n") {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + more_headers;
    if (method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + body;
  }

 private:
  bool receive() {
    std::string block(65536, '\0');
    pollfd one{socket_, POLLIN, 0};
    constexpr int kMilliseconds = 20000;
    if (::poll(&one, 1, kMilliseconds) <= 0) return false;
    const ssize_t got = ::recv(socket_, block.data(), block.size(), 0);
    if (got > 0) buffer_.append(block, 0, static_cast<std::size_t>(got));
    return got > 0;
  }

  std::string line() {
    while (buffer_.find("\r\n") == std::string::npos) {
      if (!receive()) return "";
    }
    std::string text = buffer_.substr(0, buffer_.find("\r\n"));
    buffer_.erase(0, text.size() + 2);
    return text;
  }

  int socket_;
  bool connected_ = false;
  std::string buffer_;
};

inline HttpReply ask(int port, const std::string& method, const std::string& path, const std::string& body = "",
                     const std::string& more_headers = "Content-Type: application/json\r\n") {
  return HttpClient(port).ask(method, path, body, more_headers);
}

}  // namespace etc::test
