// The only user of cpp-httplib: it reads requests from a Connection and writes answers to it. The library's own
// sockets, threads, files and routes are not used.
#include "tasks/serve/http_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>

#include "etc_core/base/ascii.h"
#include "etc_core/base/error_text.h"
#include "tasks/serve/connection.h"
#include "tasks/serve/listener.h"

namespace etc::serve {

namespace {

constexpr std::int64_t kHeadBytes = 32768;            // of a request's line and headers
constexpr std::int64_t kChunkOverhead = 65536;        // sizes and line ends between pieces of a body
constexpr std::size_t kManyRequests = 1'000'000'000;  // on one connection
constexpr const char* kAnyPath = R"([\s\S]*)";
constexpr const char* kStillThere = "HTTP/1.1 100 Continue\r\n\r\n";  // allowed before any answer, without meaning
constexpr const char* kBusy =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\nRetry-After: 1\r\n";

// A connection in the form of the library's stream interface.
class ConnectionStream final : public httplib::Stream {
 public:
  explicit ConnectionStream(Connection& connection) : connection_(connection) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !connection_.left(); }
  ssize_t read(char* to, size_t size) override { return static_cast<ssize_t>(connection_.read(to, size)); }
  ssize_t write(const char* from, size_t size) override {
    return connection_.write(from, size) ? static_cast<ssize_t>(size) : -1;
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return connection_.socket(); }

 private:
  Connection& connection_;
};

// "application/json; charset=utf-8" → "application/json"
std::string type_of(const std::string& header) {
  std::string type = lower_ascii(header.substr(0, header.find(';')));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  return type;
}

bool has_blank_name(const httplib::Request& request) {
  return std::any_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
    return std::any_of(header.first.begin(), header.first.end(), [](char c) { return c == ' ' || c == '\t'; });
  });
}

// The error in how the body's length and the host are given, or null: two servers must not parse one request as two.
const char* wrong_framing(const httplib::Request& request) {
  const std::string length = request.get_header_value("Content-Length"),
                    coding = lower_ascii(request.get_header_value("Transfer-Encoding"));
  if (has_blank_name(request)) return "headers: expected names without blanks, each with a colon right behind it";
  if (request.get_header_value_count("Content-Length") > 1)
    return "Content-Length: expected once, got it several times";
  if (request.get_header_value_count("Transfer-Encoding") > 1)
    return "Transfer-Encoding: expected once, got it several times";
  if (request.get_header_value_count("Host") > 1) return "Host: expected once, got it several times";
  if (request.has_header("Content-Length")) {
    constexpr std::size_t kMostDigits = 18;
    const bool digits = std::all_of(length.begin(), length.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || length.empty() || length.size() > kMostDigits) return "Content-Length: expected a number of bytes";
    if (!coding.empty()) return "expected Content-Length or Transfer-Encoding, got both";
  }
  if (!coding.empty() && coding != "chunked") return "Transfer-Encoding: expected chunked";
  return nullptr;
}

HttpRequest head_of(const httplib::Request& request) {
  HttpRequest head;
  head.method = request.method;
  head.path = request.path;
  head.type = type_of(request.get_header_value("Content-Type"));
  head.authorization = request.get_header_value("Authorization");
  head.host = lower_ascii(request.get_header_value("Host"));
  head.origin = lower_ascii(request.get_header_value("Origin"));
  if (request.has_header("Content-Length")) head.length = std::stoull(request.get_header_value("Content-Length"));
  return head;
}

// Whether the client supports chunked answers; for others the answer ends with the connection.
bool in_marked_pieces(const httplib::Request& request) {
  return request.version != "HTTP/1.0";
}

void put(HttpAnswer&& answer, const httplib::Request& request, httplib::Response& response) {
  response.status = answer.status;
  for (const auto& [name, value] : answer.headers) response.set_header(name, value);
  if (!answer.pieces) {
    response.body = std::move(answer.body);
    response.set_header("Content-Type", answer.type);
    return;
  }
  const auto provider = [next = std::move(answer.pieces)](size_t, httplib::DataSink& sink) {
    const auto piece = next();
    if (!piece) {
      sink.done();
      return true;
    }
    return piece->empty() || sink.write(piece->data(), piece->size());
  };
  if (in_marked_pieces(request)) {
    response.set_chunked_content_provider(answer.type, provider);
  } else {
    response.set_content_provider(answer.type, provider);
  }
}

}  // namespace

struct HttpServer::Impl final : httplib::Server {
  Impl(HttpHandler& answers, const HttpLimits& bounds)
      : handler(answers),
        limits(bounds),
        listener(
            bounds.connections, [this](int socket) { serve(socket); },
            [this](int socket, const std::string& why) { reject(socket, why); }) {
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return refuse(request, response) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    const auto without_body = [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response, "");
    };
    Get(kAnyPath, without_body);
    const auto with_body = [this](const httplib::Request& request, httplib::Response& response,
                                  const httplib::ContentReader& reader) { read_and_answer(request, response, reader); };
    Post(kAnyPath, with_body);
    set_error_handler([this](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) explain(response);
    });
    set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, std::exception_ptr) { response.status = 500; });
    set_post_routing_handler(
        [this](const httplib::Request&, httplib::Response& response) { say_whether_more_follows(response); });
    set_keep_alive_timeout(static_cast<time_t>(limits.idle_seconds));  // for the Keep-Alive header
    set_keep_alive_max_count(kManyRequests);
    svr_sock_ = 0;  // the library aborts a chunked answer if it has no socket
  }

  // The request that the calling thread is processing.
  struct Exchange {
    Connection* connection = nullptr;
    HttpRequest request;
    bool whole = false;   // the request was read to its end: another may follow
    bool closed = false;  // the client wants no further request, or the answer ends with the connection
    std::int64_t body_bytes = 0;
    std::shared_ptr<void> kept;  // HttpAnswer's
  };

  void serve(int socket) {
    Connection connection(socket, listener.stopped_descriptor(), limits.read_seconds);
    ConnectionStream stream(connection);
    bool more = true;
    for (double idle = limits.read_seconds; more && connection.wait(idle); idle = limits.idle_seconds) {
      Exchange now;
      now.connection = &connection;
      exchange = &now;
      const Clock::time_point begin = Clock::now();
      connection.begin_request(kHeadBytes);
      bool written = false;
      status = 0;
      try {
        written = process_request(stream, listener.stopping(), now.closed, [&](httplib::Request& request) {
          request.ranges.clear();  // ranges are ignored: answers are sent whole
        });
      } catch (const std::exception&) {  // of the library, for a malformed request
        now.closed = true;
      }
      in_bodies -= now.body_bytes;
      exchange = nullptr;
      if (connection.exceeded() != Connection::Limit::none && !now.whole && status == 0) tell_limit(connection);
      if (status != 0) {
        handler.answered(now.request, status, std::chrono::duration<double>(Clock::now() - begin).count());
      }
      if (now.whole) connection.end_request();
      more = written && !now.closed && now.whole && !listener.stopping();
    }
  }

  // The answer to a request whose head was too long or too late.
  HttpAnswer limit_answer(const Connection& connection) const {
    if (connection.exceeded() == Connection::Limit::time) return too_late();
    return error_answer(431, fmt::format("expected a request line and headers of at most {} bytes", kHeadBytes));
  }

  HttpAnswer too_late() const {
    return error_answer(408, fmt::format("expected the whole request within {} seconds", limits.read_seconds));
  }

  // For cases in which the library sends no answer.
  void tell_limit(Connection& connection) {
    const HttpAnswer told = limit_answer(connection);
    status = told.status;
    const std::string text =
        fmt::format("HTTP/1.1 {} Refused\r\nContent-Type: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
                    status, told.type, told.body.size(), told.body);
    connection.write(text.data(), text.size());
  }

  void reject(int socket, const std::string& why) {
    const std::string body = error_answer(503, why).body;
    const std::string text = fmt::format("{}Content-Length: {}\r\n\r\n{}", kBusy, body.size(), body);
    ::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    handler.answered(HttpRequest(), 503, 0);
  }

  // Whether the request is answered before its body is read.
  bool refuse(const httplib::Request& request, httplib::Response& response) {
    Exchange& now = *exchange;
    now.request = head_of_or_none(request);
    now.request.left = [connection = now.connection] { return connection->left(); };
    if (lower_ascii(request.get_header_value("Connection")) == "close") now.closed = true;
    std::optional<HttpAnswer> refusal;
    const std::string encoding = lower_ascii(request.get_header_value("Content-Encoding"));
    if (const char* const wrong = wrong_framing(request)) {
      refusal = error_answer(400, wrong);
    } else if (!encoding.empty() && encoding != "identity" && encoding != "gzip" && encoding != "deflate") {
      refusal = error_answer(415, fmt::format("Content-Encoding: expected gzip, deflate or none, got {}", encoding));
    } else if (request.is_multipart_form_data()) {
      refusal = error_answer(415, "Content-Type: expected application/json or application/x-ndjson, got a form");
    } else if (now.request.length && *now.request.length > static_cast<std::uint64_t>(limits.body_bytes)) {
      refusal = too_large();
    } else {
      refusal = handler.refuse(now.request);
      if (!refusal && request.method == "POST" && !now.request.length && !request.has_header("Transfer-Encoding"))
        refusal = error_answer(411, "expected a header Content-Length, or Transfer-Encoding: chunked");
    }
    if (!refusal) {
      if (request.version != "HTTP/1.0") now.connection->probe_with(kStillThere);
      // A chunked body may be larger in transfer than its content.
      now.connection->allow(2 * limits.body_bytes + kChunkOverhead);
      return false;
    }
    finish(std::move(*refusal), request, response);
    return true;
  }

  HttpRequest head_of_or_none(const httplib::Request& request) const {
    return wrong_framing(request) == nullptr ? head_of(request) : HttpRequest();
  }

  HttpAnswer too_large() const {
    return error_answer(413,
                        fmt::format("the request's body is too large: expected at most {} bytes", limits.body_bytes));
  }

  void read_and_answer(const httplib::Request& request, httplib::Response& response,
                       const httplib::ContentReader& reader) {
    Exchange& now = *exchange;
    std::string body;
    bool large = false, full = false;
    const bool read = reader([&](const char* data, size_t size) {
      const auto bytes = static_cast<std::int64_t>(size);
      large = std::ssize(body) + bytes > limits.body_bytes;
      full = !large && in_bodies + bytes > limits.all_bodies_bytes;
      if (large || full) return false;
      in_bodies += bytes;
      now.body_bytes += bytes;
      body.append(data, size);
      return true;
    });
    if (read) return answer(request, response, std::move(body));
    HttpAnswer refusal;
    if (large) {
      refusal = too_large();
    } else if (full) {
      refusal =
          error_answer(429, fmt::format("the requests that are being answered have {} bytes, the most: try again later",
                                        limits.all_bodies_bytes));
      refusal.headers.emplace_back("Retry-After", "1");
    } else if (now.connection->exceeded() == Connection::Limit::time) {
      refusal = too_late();
    } else {
      refusal = error_answer(400, "the request's body cannot be read to its end");
    }
    finish(std::move(refusal), request, response);
  }

  void answer(const httplib::Request& request, httplib::Response& response, std::string body) {
    Exchange& now = *exchange;
    now.request.body = std::move(body);
    // The body of a method without body is not read.
    const bool unread =
        request.method != "POST" && (now.request.length.value_or(0) > 0 || request.has_header("Transfer-Encoding"));
    HttpAnswer made;
    try {
      made = handler.answer(now.request);
    } catch (const std::exception& error) {
      made = error_answer(500, error_text(error));
    }
    now.whole = !unread;
    finish(std::move(made), request, response);
  }

  void finish(HttpAnswer&& made, const httplib::Request& request, httplib::Response& response) {
    status = made.status;
    exchange->kept = std::move(made.kept);
    if (made.pieces && !in_marked_pieces(request)) exchange->closed = true;
    put(std::move(made), request, response);
  }

  // The library always announces that the connection stays open; correct that.
  void say_whether_more_follows(httplib::Response& response) const {
    if (exchange->whole && !exchange->closed && !listener.stopping()) return;
    response.headers.erase("Keep-Alive");
    response.headers.erase("Connection");
    response.set_header("Connection", "close");
  }

  // Replaces the text of an answer that the library decided on.
  void explain(httplib::Response& response) {
    const bool exceeded = exchange->connection->exceeded() != Connection::Limit::none;
    constexpr int kLongPath = 414;
    const HttpAnswer told = exceeded ? limit_answer(*exchange->connection)
                            : response.status == kLongPath
                                ? error_answer(kLongPath, fmt::format("expected a request line of at most {} bytes",
                                                                      CPPHTTPLIB_REQUEST_URI_MAX_LENGTH))
                                : error_answer(response.status, "this is no HTTP/1.1 request that the server knows");
    response.status = status = told.status;
    response.set_content(told.body, told.type);
  }

  HttpHandler& handler;
  const HttpLimits limits;
  Listener listener;
  std::atomic<std::int64_t> in_bodies{0};
  static thread_local Exchange* exchange;
  static thread_local int status;  // of the answer to the thread's request; 0: none
};

thread_local HttpServer::Impl::Exchange* HttpServer::Impl::exchange = nullptr;
thread_local int HttpServer::Impl::status = 0;

HttpServer::HttpServer(HttpHandler& handler, const HttpLimits& limits)
    : impl_(std::make_unique<Impl>(handler, limits)) {}
HttpServer::~HttpServer() = default;

int HttpServer::listen(const std::string& host, int port) {
  return impl_->listener.listen(host, port);
}

void HttpServer::run() {
  impl_->listener.run();
}

void HttpServer::stop() {
  impl_->listener.stop();
}

std::int64_t HttpServer::connections() const {
  return impl_->listener.connections();
}

}  // namespace etc::serve
