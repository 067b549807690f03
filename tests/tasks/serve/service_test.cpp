// A small model behind HTTP: the answers equal those of the commands, bit for bit, whatever else is requested at the
// same time.
#include "tasks/serve/service.h"

#include <atomic>
#include <csignal>
#include <map>
#include <sstream>
#include <thread>

#include "etc_core/base/files.h"
#include "etc_core/nn/backends.h"
#include "tasks/serve/answers.h"
#include "tests/tasks/inference/small_scene.h"
#include "tests/tasks/serve/http_client.h"

using namespace etc;
using test::HttpClient;
using test::HttpReply;
using test::SmallScene;
using test::Words;

namespace {

constexpr const char* kLineType = "Content-Type: application/x-ndjson\r\n";
constexpr const char* kDocument =
    "The harbour\n\nThe old harbour was built by owners. It is quiet.\n\nThe tower is famous.";

const SmallScene& scene() {
  static const SmallScene once("hotpotqa", ".json");
  return once;
}

// A service of the scene's model, listening.
class Served {
 public:
  explicit Served(serve::ServiceOptions options = {})
      : service_(of_scene(std::move(options))), server_(service_, service_.http_limits()) {
    port_ = server_.listen("127.0.0.1", 0);
    thread_ = std::thread([this] { server_.run(); });
  }
  ~Served() {
    server_.stop();
    thread_.join();
  }
  int port() const { return port_; }
  HttpReply post(const std::string& path, const std::string& body) const {
    return test::ask(port_, "POST", path, body);
  }

 private:
  static serve::ServiceOptions of_scene(serve::ServiceOptions options) {
    register_cpu_backend();
    options.model.model = scene().path("run/best");
    return options;
  }

  serve::Service service_;
  serve::HttpServer server_;
  int port_ = 0;
  std::thread thread_;
};

Json question(const std::string& text) {
  return {{"document", text}, {"question", "Who built the harbour?"}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The scene's records and some longer ones.
std::string records_as_lines() {
  std::string lines;
  const Json records = read_json_file(scene().records());
  for (int copy = 0; copy < 4; ++copy) {
    for (Json record : records) {
      record["_id"] = record["_id"].get<std::string>() + std::to_string(copy);
      for (int more = 0; more < copy; ++more) record["context"].push_back(record["context"][0]);
      lines += json_line(record) + "\n";
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("answers have the bits of etc predict, one by one, in lines, in an array and beside others", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const std::string records = records_as_lines();
  const std::string expected =
      scene().run({"predict", "--model", scene().path("run"), "--input", "-", "--answers", "-"}, records);
  const Served served;
  CHECK(test::ask(served.port(), "POST", "/predict", records, kLineType).body == expected);
  const std::vector<std::string> each = lines_of(records), answers = lines_of(expected);
  REQUIRE(each.size() == answers.size());
  std::string array = "[", answer_array = "[";
  for (std::size_t i = 0; i < each.size(); ++i) {
    array += (i > 0 ? "," : "") + each[i];
    answer_array += (i > 0 ? ",\n" : "") + answers[i];
  }
  CHECK(served.post("/predict", array + "]").body == answer_array + "]\n");
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (std::size_t c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      HttpClient client(served.port());
      for (std::size_t i = 0; i < each.size(); ++i) {
        const std::size_t n = (i + c) % each.size();
        if (client.ask("POST", "/predict", each[n]).body != answers[n] + "\n") ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(wrong == 0);
  std::string metrics;  // a request is counted after its answer was sent: the last may be missing yet
  for (int look = 0; look < 1000 && metrics.find("status=\"200\"} 66\n") == std::string::npos; ++look)
    metrics = test::ask(served.port(), "GET", "/metrics").body;
  CHECK_THAT(metrics, Catch::Contains("etc_requests_total{endpoint=\"/predict\",status=\"200\"} 66") &&
                          Catch::Contains("etc_request_seconds_bucket{endpoint=\"/predict\",le=\"+Inf\"} 66"));
}

TEST_CASE("documents, texts and tokens are answered as the commands do", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Served served;
  const std::string run = scene().path("run");
  Json asked = Json::parse(scene().run(
      {"ask", "--model", run, "--document", "-", "--question", "Who built the harbour?", "--json"}, kDocument));
  asked.erase("document");
  CHECK(Json::parse(served.post("/ask", json_line(question(kDocument))).body) == asked);
  const std::string text = "{\"id\":\"a\",\"text\":\"The harbour is old. It is quiet.\"}\n";
  for (const std::string states : {"mean", "long", "global"}) {
    const std::string expected =
        scene().run({"encode", "--text", "-", "--model", run, "--states", states, "--output", "-"}, text);
    Json request = Json::parse(text);
    request["states"] = states;
    CHECK(served.post("/encode", json_line(request)).body == expected);
    // Together with a longer text.
    const Json longer = {{"id", 1}, {"states", states}, {"text", "One. Two words. And three more words here."}};
    const HttpReply both =
        test::ask(served.port(), "POST", "/encode", json_line(longer) + "\n" + json_line(request), kLineType);
    CHECK(lines_of(both.body).at(1) + "\n" == expected);
  }
  const Json tokens = Json::parse(served.post("/tokenize", "{\"text\": \"The harbour\"}").body);
  CHECK(tokens.at("ids").size() == tokens.at("pieces").size());
  CHECK(tokens.at("pieces").at(0) == "the");
  CHECK_THAT(served.post("/attention", json_line(question(kDocument))).body,
             Catch::StartsWith("<!doctype html>") && Catch::Contains("harbour") && Catch::Contains("\"heads\":2"));
  const Json info = Json::parse(test::ask(served.port(), "GET", "/info").body);
  CHECK(info.at("task") == "hotpotqa");
  CHECK(info.at("documents") == "ask");
  CHECK(info.at("model") == "best");
  CHECK(test::ask(served.port(), "GET", "/health/live").body == "ok\n");
  CHECK(test::ask(served.port(), "GET", "/health/ready").status == 200);
  const HttpReply page = test::ask(served.port(), "GET", "/");
  CHECK(page.body == read_file(std::filesystem::path(std::getenv("ETC_SOURCE_DIR")) / "tasks/serve/page.html"));
  CHECK_THAT(page.head, Catch::Contains("default-src 'none'"));
}

// The page in a headless browser after its scripts have run; empty: no browser.
std::string in_browser(int port, const std::string& wanted) {
  if (std::system("command -v chromium >/dev/null 2>&1") != 0) return "";
  const test::TemporaryFolder folder;
  const std::string output = folder / "dom";
  const std::string command = fmt::format(
      "chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=60000 --dump-dom "
      "'http://127.0.0.1:{}/#{}' >'{}' 2>/dev/null",
      port, wanted, output);
  REQUIRE(std::system(command.c_str()) == 0);
  const std::string dom = read_file(output);
  return dom.substr(0, dom.find("<script>"));
}

TEST_CASE("in a browser the page shows answer, evidence and attention, and says what was refused", "[serve][slow]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  serve::ServiceOptions options;
  const Served served(options);
  const std::string answered = in_browser(served.port(), "example=0&run&look");
  if (answered.empty()) return test::skip("chromium is not installed");
  CHECK_THAT(answered, Catch::Contains("task hotpotqa") && Catch::Contains("<dt>tokens</dt>"));
  CHECK_THAT(answered, Catch::Contains("id=\"spoken\" role=\"status\">Answer: "));
  CHECK_THAT(answered, Catch::Contains("<section id=\"marked-box\" aria-labelledby=\"marked-title\">"));
  CHECK_THAT(answered, Catch::Contains("srcdoc=\"&lt;!doctype") || Catch::Contains("srcdoc=\"<!doctype"));
  CHECK_THAT(answered, !Catch::Contains("undefined"));

  options.http.body_bytes = 100;  // less than the example
  const Served small(options);
  const std::string refused = in_browser(small.port(), "example=0&run");
  CHECK_THAT(refused, Catch::Contains("id=\"error\" role=\"alert\">request: ") || Catch::Contains("100 bytes"));
  CHECK_THAT(refused, Catch::Contains("id=\"marked-box\" aria-labelledby=\"marked-title\" hidden"));
}

TEST_CASE("what cannot be answered is refused with the status and the reason", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Served served;
  const auto refused = [&](const std::string& path, const std::string& body, int status) {
    const HttpReply reply = served.post(path, body);
    CAPTURE(path, body.substr(0, 100), reply.body);
    CHECK(reply.status == status);
    return Json::parse(reply.body).at("error").get<std::string>();
  };
  CHECK_THAT(refused("/predict", "{\"_id\": \"a\"}", 422), Catch::Contains("context"));
  CHECK_THAT(refused("/predict", "{\"_id\": ", 400), Catch::Contains("JSON"));
  CHECK_THAT(refused("/predict", "[{}, ", 400), Catch::Contains("byte"));
  CHECK_THAT(refused("/predict", "\"caf\xE9\"", 400), Catch::Contains("UTF-8"));
  CHECK_THAT(refused("/predict", " ", 400), Catch::Contains("empty"));
  CHECK_THAT(refused("/ask", json_line(question("")), 422), Catch::Contains("the document is empty"));
  CHECK_THAT(refused("/ask", "{\"document\": \"Text.\", \"question\": \" \"}", 422), Catch::Contains("a word in it"));
  CHECK_THAT(refused("/ask", "{\"dokument\": \"Text.\"}", 422), Catch::Contains("did you mean document?"));
  CHECK_THAT(refused("/ask", "{\"document\": 3}", 422), Catch::Contains("expected a string, got number"));
  CHECK_THAT(refused("/ask", "{\"document\": \"a\", \"question\": \"b\", \"form\": \"pdf\"}", 422),
             Catch::Contains("plain, markdown or html"));
  CHECK_THAT(refused("/encode", "{\"text\": \"a\", \"states\": \"short\"}", 422),
             Catch::Contains("mean, long or global"));
  CHECK_THAT(refused("/encode", "[1", 400), Catch::Contains("byte"));
  CHECK_THAT(refused("/keyphrases", "{}", 404), Catch::Contains("openkp"));
  CHECK_THAT(refused("/../../etc/passwd", "{}", 404), Catch::Contains("/predict"));
  CHECK(test::ask(served.port(), "GET", "/predict").status == 405);
  CHECK(test::ask(served.port(), "POST", "/predict", "{}", "Content-Type: text/plain\r\n").status == 415);
  CHECK(test::ask(served.port(), "GET", "/info", "", "Origin: http://elsewhere.example\r\n").status == 403);
  CHECK_THAT(HttpClient(served.port()).ask("GET", "/info").head, !Catch::Contains("Access-Control"));
  HttpClient rebound(served.port());
  rebound.send("GET /info HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n");
  CHECK(rebound.read_one().status == 403);
  HttpClient in_capitals(served.port());
  in_capitals.send("GET /info HTTP/1.1\r\nHost: LocalHost:80\r\nOrigin: http://localhost:80\r\n\r\n");
  CHECK(in_capitals.read_one().status == 200);
  // Error messages return only the beginning of the input.
  const std::string letters(100'000, 'a');
  for (const std::string& body : {"{\"text\": \"" + letters, "{\"" + letters + "\": 1}",
                                  "{\"text\": \"a\", \"states\": \"" + letters + "\"}", "[{\"" + letters + "\": 1}]"})
    CHECK(served.post("/encode", body).body.size() < 700);
  // A line that cannot be answered does not affect the others.
  const std::string lines = "{\"text\": \"One.\"}\n{\"text\": 1}\n\nnonsense\n{\"text\": \"Two.\"}";
  const auto answers = lines_of(test::ask(served.port(), "POST", "/encode", lines, kLineType).body);
  REQUIRE(answers.size() == 4);
  CHECK(Json::parse(answers[0]).contains("states"));
  CHECK(Json::parse(answers[1]).at("status") == 422);
  CHECK(Json::parse(answers[1]).at("record") == 1);
  CHECK(Json::parse(answers[2]).at("status") == 400);
  CHECK(Json::parse(answers[3]).contains("states"));
}

TEST_CASE("a memory limit is held against each request, and answers stay the same", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  serve::ServiceOptions options;
  options.max_long_tokens = 100000;
  options.http.body_bytes = 1'000'000;
  options.http.all_bodies_bytes = 1'000'000;
  options.http.connections = 8;
  options.model.memory_limit = memory_ledger::process_peak_bytes() + 80'000'000;
  const Served served(options);
  std::string words, sentences;
  for (int i = 0; i < 100'000; ++i) words += "word ";
  for (int i = 0; i < 30'000; ++i) sentences += "Words and more. ";
  for (const std::string& text : {words, sentences}) {
    const HttpReply large = served.post("/encode", json_line(Json{{"text", text}}));
    CAPTURE(large.body.substr(0, 300));
    CHECK(large.status == 413);
    CHECK_THAT(large.body, Catch::Contains("that the memory limit leaves"));
  }
  const HttpReply small = served.post("/encode", "{\"text\": \"One.\"}");
  CHECK(small.status == 200);
  serve::ServiceOptions tight;
  tight.model.memory_limit = 1'000'000;
  CHECK_THROWS_WITH(Served(tight), Catch::Contains("the memory limit of 1.0 MB is too low"));
}

// The program's messages once it listens there, or after ten seconds.
std::string said_by_listening(const std::string& name, const std::string& address) {
  std::string said;
  for (int look = 0; look < 1000 && said.find(address) == std::string::npos; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (std::filesystem::exists(scene().path(name + ".err"))) said = read_file(scene().path(name + ".err"));
  }
  return said;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("the program stays below its memory limit whatever texts it is sent", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  constexpr std::int64_t kLimit = 300'000'000;
  test::Child child({*test::program(), "serve", "--model", scene().path("run"), "--port", "0", "--threads", "1",
                     "--memory-limit", "300MB"},
                    scene().path("limited"));
  const std::string said = said_by_listening("limited", "127.0.0.1:");
  REQUIRE(said.find("127.0.0.1:") != std::string::npos);
  const int port = std::stoi(said.substr(said.find("127.0.0.1:") + 10));
  const auto repeated = [](const std::string& before, const std::string& unit, std::size_t bytes,
                           const std::string& after) {
    std::string text = before;
    while (text.size() < bytes) text += unit;
    return text + after;
  };
  std::map<int, int> answers;
  for (std::size_t bytes = 20'000; bytes < 4'000'000; bytes *= 3) {
    const std::string question = "\", \"question\": \"b\"", html = question + ", \"form\": \"html\"}";
    const std::pair<std::string, std::string> bodies[] = {
        {"/tokenize", repeated("{\"text\": \"", "!", bytes, "\"}")},
        {"/tokenize", repeated("{\"x\": [{}", ",{}", bytes, "]}")},
        {"/tokenize", repeated("[1", ",1", bytes, "]")},
        {"/encode", repeated("{\"text\": \"", "a.\\n", bytes, "\"}")},
        {"/ask", repeated("{\"document\": \"", "<p>a", bytes, html)},
        {"/ask", repeated("{\"document\": \"", "A. ", bytes, question + "}")},
        {"/predict", repeated("{\"_id\": \"a\", \"question\": \"b\", \"context\": [[\"t\", [\"a\"]]",
                              ",[\"t\",[\"a\"]]", bytes, "]}")},
    };
    for (const auto& [path, body] : bodies) ++answers[test::ask(port, "POST", path, body).status];
  }
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
  CHECK(child.peak_bytes() < kLimit);
  CHECK(answers[200] > 0);
  CHECK(answers[413] > 0);
  CHECK(answers[200] + answers[413] + answers[422] == 35);
}
#endif

TEST_CASE("under a memory limit attention is answered with the page that there is without one", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const std::string request = json_line(question(kDocument));
  const std::string page = Served().post("/attention", request).body;
  serve::ServiceOptions options;
  options.model.memory_limit = memory_ledger::process_peak_bytes() + 300'000'000;
  const HttpReply limited = Served(options).post("/attention", request);
  CAPTURE(limited.body.substr(0, 300));
  CHECK(limited.status == 200);
  CHECK(limited.body == page);
}

TEST_CASE("answers to an array of many elements come in pieces, and none is made for a client that left", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  constexpr std::size_t kElements = 5000;
  std::string array = "[1";
  for (std::size_t i = 1; i < kElements; ++i) array += ",1";
  const HttpReply many = Served().post("/tokenize", array + "]");
  CHECK_THAT(many.head, Catch::Contains("Transfer-Encoding: chunked"));
  const Json answers = Json::parse(many.body);
  REQUIRE(answers.size() == kElements);
  CHECK(answers.back().at("record") == kElements - 1);
  serve::Scheduler scheduler({});
  int made = 0;
  bool left = false;
  const auto make = [&](std::string, const std::string&) -> std::unique_ptr<serve::Item> {
    ++made;
    throw serve::Refused(422, "not to be answered");
  };
  const auto texts = [] { return std::optional<std::string>("1"); };
  const auto take_memory = [](const std::string&) { return std::optional(serve::MemoryBudget::Part()); };
  serve::Answers of_one(scheduler, make, texts, take_memory, [&] { return left; });
  CHECK(of_one.next());
  left = true;
  const int before = made;
  CHECK_FALSE(of_one.next());
  CHECK(made == before);
}

TEST_CASE("a token is asked for, but for the page and the health", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  serve::ServiceOptions options;
  options.token = "secret";
  const Served served(options);
  const auto status = [&](const std::string& path, const std::string& headers) {
    return test::ask(served.port(), "GET", path, "", headers).status;
  };
  CHECK(status("/info", "") == 401);
  CHECK(status("/metrics", "Authorization: Bearer secreT\r\n") == 401);
  CHECK(status("/nothing", "") == 401);
  CHECK(status("/info", "Authorization: Bearer secret\r\n") == 200);
  CHECK(status("/info", "authorization: bearer secret\r\n") == 200);
  CHECK(status("/info", "Authorization: Basic secret\r\n") == 401);
  CHECK(status("/", "") == 200);
  CHECK(status("/health/ready", "") == 200);
  CHECK(test::ask(served.port(), "POST", "/tokenize", "{\"text\": \"a\"}").status == 401);
}

TEST_CASE("etc serve listens on the loopback until it is told to stop", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  test::Child child({*test::program(), "serve", "--model", scene().path("run"), "--port", "0"}, scene().path("serve"));
  const std::string said = said_by_listening("serve", "127.0.0.1:");
  REQUIRE(said.find("127.0.0.1:") != std::string::npos);
  const int port = std::stoi(said.substr(said.find("127.0.0.1:") + 10));
  CHECK(test::ask(port, "POST", "/ask", json_line(question(kDocument))).status == 200);
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
  CHECK_THAT(read_file(scene().path("serve.err")), Catch::Contains("SIGTERM: answering what was asked, then the end"));
  CHECK_FALSE(HttpClient(port).connected());
}

TEST_CASE("etc serve tells an address of IPv6 as browsers take it", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  if (!std::filesystem::exists("/proc/net/if_inet6")) return test::skip("this machine has no IPv6");
  test::Child child({*test::program(), "serve", "--model", scene().path("run"), "--port", "0", "--host", "::1"},
                    scene().path("serve6"));
  CHECK_THAT(said_by_listening("serve6", "http://"), Catch::Contains("http://[::1]:"));
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
}

TEST_CASE("a page of the weights that another program took away ends the program with advice", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  test::Child child({*test::program(), "serve", "--model", scene().path("run"), "--port", "0"}, scene().path("lost"));
  CHECK_THAT(said_by_listening("lost", "http://"), Catch::Contains("http://"));
  child.send(SIGBUS);  // as the kernel does
  CHECK(child.wait() == 1);
  CHECK_THAT(read_file(scene().path("lost.err")), Catch::Contains("replace files of a model by mv"));
}

TEST_CASE("etc serve refuses times beyond a day and a text without tokens", "[serve]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const auto refused = [&](const std::string& option, const std::string& value) {
    const test::Result result =
        scene().try_run({"serve", "--model", scene().path("run"), "--port", "0", option, value});
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK_THAT(refused("--read-seconds", "9300000000"),
             Catch::Contains("--read-seconds: expected a whole number from 1 to 86400"));
  CHECK_THAT(refused("--wait-seconds", "86401"),
             Catch::Contains("--wait-seconds: expected a whole number from 1 to 86400"));
  CHECK_THAT(refused("--max-long-tokens", "0"), Catch::Contains("at least 1"));
}
