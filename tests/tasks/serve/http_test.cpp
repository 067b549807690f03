// The protocol: limits, timeouts, invalid requests, disconnecting clients, shutdown. The handler is the test's own.
#include <atomic>
#include <map>
#include <new>
#include <thread>

#include "tasks/serve/http_server.h"
#include "tests/support/catch.h"
#include "tests/support/mutate.h"
#include "tests/support/no_more_threads.h"
#include "tests/tasks/serve/http_client.h"

using namespace etc;
using serve::HttpAnswer;
using serve::HttpLimits;
using serve::HttpRequest;
using test::HttpClient;
using test::HttpReply;

namespace {

// Answers with the request's body; /left waits until its client has left, for a moment at most if it may go on; /slow
// waits until it may go on.
class Echo final : public serve::HttpHandler {
 public:
  std::optional<HttpAnswer> refuse(const HttpRequest& request) override {
    if (request.path == "/none") return serve::error_answer(404, "none");
    return std::nullopt;
  }
  HttpAnswer answer(const HttpRequest& request) override {
    using namespace std::chrono_literals;
    HttpAnswer answer;
    answer.body = request.body;
    ++begun;
    for (int look = 0; request.path == "/slow" && look < 5000 && !may_go_on; ++look) std::this_thread::sleep_for(2ms);
    if (request.path == "/throws") throw std::runtime_error("a \"reason\"");
    if (request.path == "/large") throw std::bad_alloc();
    for (int look = 0; request.path == "/left" && look < (may_go_on ? 20 : 1000) && !saw_leaving; ++look) {
      saw_leaving = request.left();
      std::this_thread::sleep_for(5ms);
    }
    if (request.path == "/pieces") {
      answer.pieces = [n = 0]() mutable -> std::optional<std::string> {
        if (n == 3) return std::nullopt;
        return "piece " + std::to_string(n++) + "\n";
      };
    }
    return answer;
  }
  void answered(const HttpRequest&, int, double) override { ++count; }

  std::atomic<bool> saw_leaving{false};
  std::atomic<bool> may_go_on{false};
  std::atomic<int> begun{0}, count{0};
};

class Scene {
 public:
  explicit Scene(const HttpLimits& limits = {}) : server_(echo, limits), port_(server_.listen("127.0.0.1", 0)) {
    thread_ = std::thread([this] { server_.run(); });
  }
  ~Scene() { end(); }
  void end() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  int port() const { return port_; }
  void stop() { server_.stop(); }
  std::int64_t connections() const { return server_.connections(); }

  Echo echo;

 private:
  serve::HttpServer server_;
  int port_;
  std::thread thread_;
};

// Waits for a condition, ten seconds at most.
void wait_until(const std::function<bool()>& so) {
  bool is = so();  // a later query to the server may have another answer
  for (int look = 0; look < 5000 && !is; ++look, is = so()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  REQUIRE(is);
}

std::string all_of(int port, const std::string& bytes) {
  const HttpClient client(port);
  client.send(bytes);
  client.end_sending();
  return client.read_all();
}

// The requests that mutants are made from: valid ones, and some with one error.
std::vector<std::string> seeds() {
  const std::string head = "POST /echo HTTP/1.1\r\nHost: localhost\r\n";
  return {
      HttpClient::request("POST", "/echo", "{\"text\": \"caf\xC3\xA9\"}"),
      HttpClient::request("GET", "/echo?x=%41&y", ""),
      head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello",
      head + "Content-Length: 99999999999999999999999\r\n\r\n",
      head + "Content-Length: -1\r\n\r\nx",
      head + "Content-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
      head + "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
      head + "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 5\r\n\r\n--x--",
      head + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
      "GET /echo HTTP/1.1\r\nRange: bytes=0-1,5-,-7,99999999999999999999999-3\r\n\r\n",
      "GET /echo HTTP/1.1\r\nRange: bytes=" + std::string(2000, '1') + "-\r\n\r\n",
      "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n",
      "GET /..%2f..%2fetc%2fpasswd HTTP/1.0\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "\r\n\r\n\x16\x03\x01\x02",
  };
}

void survive(std::uint64_t count) {
  HttpLimits limits;
  limits.body_bytes = 1000;
  limits.read_seconds = 0.5;
  Scene scene(limits);
  const std::vector<std::string> all = seeds();
  int answered = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string& seed = all[i % all.size()];
    const std::string reply = all_of(scene.port(), i < all.size() ? seed : test::mutate(seed, i));
    if (reply.starts_with("HTTP/1.1 ")) ++answered;
  }
  CHECK(answered > static_cast<int>(count / 2));
  CHECK(test::ask(scene.port(), "POST", "/echo", "still there").body == "still there");
}

}  // namespace

TEST_CASE("requests of one connection are answered one after the other", "[serve]") {
  Scene scene;
  HttpClient client(scene.port());
  CHECK(client.ask("POST", "/echo", "first").body == "first");
  client.send(HttpClient::request("POST", "/echo", "second") + HttpClient::request("POST", "/pieces", ""));
  CHECK(client.read_one().body == "second");
  CHECK(client.read_one().body == "piece 0\npiece 1\npiece 2\n");
  const HttpReply failed = client.ask("POST", "/throws");
  CHECK(failed.status == 500);
  CHECK(failed.body == "{\"error\":\"a \\\"reason\\\"\"}\n");
  CHECK(client.ask("POST", "/large").body == "{\"error\":\"out of memory\"}\n");
  CHECK(client.ask("GET", "/none").status == 404);
  wait_until([&] { return scene.echo.count == 6; });
}

TEST_CASE("bodies and heads beyond their limits are refused with the limit", "[serve]") {
  HttpLimits limits;
  limits.body_bytes = 1000;
  limits.all_bodies_bytes = 1500;
  Scene scene(limits);
  const HttpReply large = test::ask(scene.port(), "POST", "/echo", std::string(1001, 'x'));
  CHECK(large.status == 413);
  CHECK_THAT(large.body, Catch::Contains("at most 1000 bytes"));
  std::string pieces = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 3; ++i) pieces += "190\r\n" + std::string(400, 'x') + "\r\n";
  CHECK_THAT(all_of(scene.port(), pieces + "0\r\n\r\n"), Catch::StartsWith("HTTP/1.1 413"));
  const std::string head = "GET /echo HTTP/1.1\r\nX: ";
  CHECK_THAT(all_of(scene.port(), head + std::string(40000, 'x')), Catch::StartsWith("HTTP/1.1 4"));
  std::string headers = "GET /echo HTTP/1.1\r\n";
  for (int i = 0; i < 1000; ++i) headers += "X: " + std::string(40, 'x') + "\r\n";
  CHECK_THAT(all_of(scene.port(), headers), Catch::StartsWith("HTTP/1.1 431"));
  CHECK_THAT(all_of(scene.port(), std::string(9000, 'x')),
             Catch::StartsWith("HTTP/1.1 414") && Catch::Contains("8192 bytes"));
  HttpClient slow(scene.port()), second(scene.port());
  scene.echo.begun = 0;
  slow.send(HttpClient::request("POST", "/slow", std::string(900, 'x')));
  wait_until([&] { return scene.echo.begun == 1; });
  const HttpReply full = second.ask("POST", "/echo", std::string(900, 'x'));
  CHECK(full.status == 429);
  CHECK_THAT(full.body, Catch::Contains("1500 bytes"));
  CHECK_THAT(full.head, Catch::Contains("Retry-After: 1"));
  scene.echo.may_go_on = true;
  CHECK(slow.read_one().status == 200);
  // A body's memory is released when its answer has been sent, which may be after the client has read it.
  wait_until([&] { return test::ask(scene.port(), "POST", "/echo", std::string(900, 'x')).status == 200; });
}

TEST_CASE("a request whose end is not told once and clearly is refused at once", "[serve]") {
  Scene scene;
  const std::string head = "POST /echo HTTP/1.1\r\nHost: localhost\r\n", chunk = "\r\n4\r\nbody\r\n0\r\n\r\n";
  const auto refused = [&](const std::string& headers, const std::string& body) {
    HttpClient client(scene.port());
    client.send(head + headers + body);
    return client.read_one();
  };
  CHECK(refused("", "\r\nbody").status == 411);
  CHECK(refused("Content-Encoding: zstd\r\nContent-Length: 4\r\n", "\r\nbody").status == 415);
  const HttpReply blank = refused("Content-Length : 4\r\n", "\r\nbody");
  CHECK(blank.status == 400);
  CHECK_THAT(blank.body, Catch::Contains("names without blanks"));
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  CHECK(refused(chunked, chunk).body == "body");
  const HttpReply twice = refused(chunked + chunked, chunk);
  CHECK(twice.status == 400);
  CHECK_THAT(twice.body, Catch::Contains("Transfer-Encoding: expected once"));
  CHECK_THAT(refused("Host: elsewhere\r\nContent-Length: 4\r\n", "\r\nbody").body,
             Catch::Contains("Host: expected once"));
}

TEST_CASE("a connection that will be closed is not promised to stay", "[serve]") {
  HttpLimits limits;
  limits.read_seconds = 0.5;
  Scene scene(limits);
  const HttpReply kept = test::ask(scene.port(), "POST", "/echo", "x");
  CHECK_THAT(kept.head, Catch::Contains("Keep-Alive: ") && !Catch::Contains("Connection: "));
  const std::string closing[] = {
      "nonsense\r\n\r\n",
      "GET /echo HTT",
      "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n",
      "GET /echo HTTP/1.1\r\nX: " + std::string(40000, 'x') + "\r\n\r\n",
      "GET /none HTTP/1.1\r\n\r\n",
      "GET /echo HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody",
      "POST /echo HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
      "POST /echo HTTP/1.1\r\nContent-Length: 50\r\n\r\nhe",
      "GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n",
      "GET /echo HTTP/1.0\r\n\r\n",
      "POST /pieces HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
  };
  for (const std::string& bytes : closing) {
    const HttpClient client(scene.port());
    client.send(bytes);
    const std::string reply = client.read_all();
    CAPTURE(bytes.substr(0, 80), reply);
    CHECK_THAT(reply, Catch::StartsWith("HTTP/1.1 ") && Catch::Contains("\r\nConnection: close\r\n") &&
                          !Catch::Contains("Keep-Alive"));
    CHECK(reply.find("Connection: ") == reply.rfind("Connection: "));
  }
  CHECK_THAT(all_of(scene.port(), closing[10]), Catch::EndsWith("\r\n\r\npiece 0\npiece 1\npiece 2\n"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a connection for which there is no thread is told so, and the others are served", "[serve]") {
  Scene scene;
  HttpClient before(scene.port());
  CHECK(before.ask("POST", "/echo", "x").status == 200);
  std::map<int, int> answers;
  {
    std::vector<std::unique_ptr<HttpClient>> clients;
    clients.reserve(30);  // some reuse the stacks of threads that have ended
    const test::NoMoreThreads none;
    for (int i = 0; i < 30; ++i) {
      clients.push_back(std::make_unique<HttpClient>(scene.port()));
      ++answers[clients.back()->ask("GET", "/echo").status];
    }
    CHECK(before.ask("POST", "/echo", "x").status == 200);
  }
  CHECK(answers[503] > 0);
  CHECK(answers[200] + answers[503] == 30);
  wait_until([&] { return scene.connections() == 1; });
  CHECK(test::ask(scene.port(), "POST", "/echo", "x").status == 200);
}
#endif

TEST_CASE("one connection more than there may be is told so", "[serve]") {
  HttpLimits limits;
  limits.connections = 2;
  Scene scene(limits);
  const HttpClient first(scene.port()), second(scene.port());
  wait_until([&] { return scene.connections() == 2; });
  CHECK_THAT(all_of(scene.port(), ""), Catch::StartsWith("HTTP/1.1 503") && Catch::Contains("its most connections, 2"));
}

TEST_CASE("a sender that takes too long is told so, whatever it sends now and then", "[serve]") {
  HttpLimits limits;
  limits.read_seconds = 0.2;
  Scene scene(limits);
  for (const std::string begin : {"GET /echo HT", "POST /echo HTTP/1.1\r\nContent-Length: 50\r\n\r\nhe"}) {
    HttpClient client(scene.port());
    client.send(begin);
    for (int i = 0; i < 6; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      client.send("l");
    }
    CHECK(client.read_one().status == 408);
  }
}

TEST_CASE("a client that leaves is noticed while its request is being answered", "[serve]") {
  Scene scene;
  {
    const HttpClient client(scene.port());
    client.send(HttpClient::request("POST", "/left", ""));
    wait_until([&] { return scene.echo.begun == 1; });
    CHECK_FALSE(scene.echo.saw_leaving);
  }
  scene.end();
  CHECK(scene.echo.saw_leaving);
}

TEST_CASE("a client that has only ended its sending is answered", "[serve]") {
  Scene scene;
  scene.echo.may_go_on = true;
  const std::string left = HttpClient::request("POST", "/left", "here");
  // The server probes whether the client is still there with an interim answer.
  CHECK_THAT(all_of(scene.port(), left),
             Catch::StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n") && Catch::EndsWith("\r\n\r\nhere"));
  // An HTTP/1.0 client does not support interim answers.
  CHECK_THAT(all_of(scene.port(), "POST /left HTTP/1.0\r\nContent-Length: 4\r\n\r\nhere"),
             Catch::StartsWith("HTTP/1.1 200 OK\r\n") && Catch::EndsWith("\r\n\r\nhere"));
  CHECK_FALSE(scene.echo.saw_leaving);
}

TEST_CASE("the end comes when what was begun is answered, and idle connections do not delay it", "[serve]") {
  Scene scene;
  HttpClient idle(scene.port()), busy(scene.port());
  CHECK(idle.ask("POST", "/echo", "x").status == 200);
  busy.send(HttpClient::request("POST", "/slow", "answered"));
  wait_until([&] { return scene.echo.begun == 2; });
  scene.stop();
  scene.echo.may_go_on = true;
  const HttpReply last = busy.read_one();
  CHECK(last.body == "answered");
  scene.end();
  CHECK_FALSE(HttpClient(scene.port()).connected());
}

TEST_CASE("hundreds of connections are served at once", "[serve]") {
  Scene scene;
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(std::make_unique<HttpClient>(scene.port()));
  for (const auto& client : clients) client->send(HttpClient::request("POST", "/slow", "x"));
  wait_until([&] { return scene.echo.begun == 200; });
  scene.echo.may_go_on = true;
  int answered = 0;
  for (const auto& client : clients) answered += client->read_one().status == 200 ? 1 : 0;
  CHECK(answered == 200);
}

TEST_CASE("malformed requests end nothing but themselves", "[serve]") {
  survive(300);
}

TEST_CASE("ten thousand malformed requests end nothing but themselves", "[serve][slow]") {
  survive(10000);
}
