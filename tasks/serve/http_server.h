// HTTP/1.1 for a few clients of one program: requests in, answers out, one thread per connection.
//
// cpp-httplib parses requests and formats answers; only http_server.cpp includes it. Sockets, threads, limits and
// timeouts are implemented in this folder: a client's input is bounded in bytes and time before it is examined.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc::serve {

struct HttpRequest {
  std::string method, path;                 // the path without the part after "?"
  std::string type;                         // of the content, lower case, without parameters
  std::string authorization, host, origin;  // these headers, the last two in lower case; empty: not sent
  std::optional<std::uint64_t> length;      // of the body as announced
  std::string body;
  std::function<bool()> left;  // whether the client has disconnected; thread-safe while the request is being answered
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // Instead of body: called for one piece after the other, each sent immediately; nullopt: no more pieces.
  std::function<std::optional<std::string>()> pieces;
  std::shared_ptr<void> kept;  // until the answer was sent
};

inline constexpr std::size_t kToldBytes = 500;  // of a message, which may contain text of the client

// {"error": message} with this status, the message shortened.
HttpAnswer error_answer(int status, const std::string& message);

// Called by the connections' threads, several at a time; an exception is answered with 500.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // For a request whose body is not read yet: returning an answer refuses it, and its connection is closed.
  virtual std::optional<HttpAnswer> refuse(const HttpRequest& request) = 0;
  virtual HttpAnswer answer(const HttpRequest& request) = 0;
  // Called after each answer, including those made by the protocol code alone (then the path is empty).
  virtual void answered(const HttpRequest& request, int status, double seconds) = 0;
};

struct HttpLimits {
  std::int64_t connections = 256;                          // at a time; one more is answered with 503
  std::int64_t body_bytes = std::int64_t{4} << 20;         // of a request, also after decompression
  std::int64_t all_bodies_bytes = std::int64_t{64} << 20;  // of all requests being answered, in total
  double read_seconds = 30;  // for a whole request to arrive; also for a client to accept what is sent
  double idle_seconds = 60;  // between two requests on a connection
};

class HttpServer : NotCopied {
 public:
  // The handler must outlive the server. Throws Error in a build without cpp-httplib.
  HttpServer(HttpHandler& handler, const HttpLimits& limits);
  ~HttpServer();

  // Listens at this address and returns the port; 0: any free one. Throws Error with the system's reason.
  int listen(const std::string& host, int port);

  // Accepts connections until stop(); then waits until the requests already begun are answered. The threads it starts
  // block signals.
  void run();

  // Thread-safe; may be called before run().
  void stop();

  std::int64_t connections() const;  // open now

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::serve
