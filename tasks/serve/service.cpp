#include "tasks/serve/service.h"

#include <malloc.h>
#include <strings.h>

#include <algorithm>

#include "data/readers/json_record.h"
#include "etc_core/base/byte_size.h"
#include "etc_core/base/error.h"
#include "etc_core/base/process_memory.h"
#include "etc_core/base/version.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "tasks/inference/document_model.h"
#include "tasks/serve/answers.h"
#include "tasks/serve/page.h"
#include "tasks/text/json_field.h"
#include "tasks/train/fed_encoder.h"
#include "tasks/train/forecast.h"
#include "tasks/train/run_config.h"

namespace etc::serve {

namespace {

constexpr const char* kServe = "etc serve";
constexpr const char* kJson = "application/json";
constexpr const char* kLines = "application/x-ndjson";
constexpr std::int64_t kConnectionBytes = 100'000;  // memory of a thread that reads and writes
constexpr std::int64_t kTimesOfBody = 4;  // memory of a request while it is prepared, for each byte of its body

// The page loads nothing from other sites, and must not be shown in another site's frame.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-src 'self' "
    "blob:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";

// Upper bound of the memory of an item beside its computation, as measured with texts that consist only of the shortest
// words, sentences, paragraphs or lists.
struct TextCost {
  std::int64_t of_byte = 0;  // per byte of its text
  std::int64_t of_mark = 0;  // per character that may begin a paragraph, "<" or the "\\" of a line's end
};
constexpr TextCost kOfRecord = {100, 0}, kOfDocument = {100, 2200}, kOfText = {50, 0}, kOfPieces = {150, 0};
constexpr std::int64_t kTimesInWindows = 6;  // factor of of_byte if the task reads texts in overlapping windows
constexpr std::int64_t kOfItem = 20'000;     // constant part
constexpr std::int64_t kOfArrayByte = 50;    // in addition to its items

struct Endpoint {
  const char* path;
  const char* method;
  bool open;                     // without a token, even if one is required
  decltype(&predict_item) make;  // for POST
  TextCost cost = {};
};

constexpr Endpoint kEndpoints[] = {
    {"/", "GET", true, nullptr},
    {"/health/live", "GET", true, nullptr},
    {"/health/ready", "GET", true, nullptr},
    {"/metrics", "GET", false, nullptr},
    {"/info", "GET", false, nullptr},
    {"/predict", "POST", false, &predict_item, kOfRecord},
    {"/ask", "POST", false, &ask_item, kOfDocument},
    {"/keyphrases", "POST", false, &ask_item, kOfDocument},
    {"/encode", "POST", false, &encode_item, kOfText},
    {"/tokenize", "POST", false, &tokenize_item, kOfPieces},
    {"/attention", "POST", false, &attention_item, kOfDocument},
};

const Endpoint* endpoint_of(const std::string& path) {
  const auto* const found =
      std::find_if(std::begin(kEndpoints), std::end(kEndpoints), [&](const Endpoint& e) { return path == e.path; });
  return found == std::end(kEndpoints) ? nullptr : found;
}

// Constant-time comparison: takes the same time for every wrong token of this length.
bool same_secret(const std::string& given, const std::string& expected) {
  unsigned different = given.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i)
    different |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(expected[i % expected.size()]);
  return different == 0;
}

// "localhost:8080" → "localhost", "[::1]:8080" → "[::1]"
std::string name_in(const std::string& host) {
  const std::size_t colon = host.rfind(':'), bracket = host.rfind(']');
  const bool port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  return port ? host.substr(0, colon) : host;
}

bool is_loopback(const std::string& name) {
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]" || name == "::1";
}

// The texts of a JSON array's elements, or of the lines of a text; they are copied one by one because each may be long.
NextText elements_of(Json array) {
  auto all = std::make_shared<Json>(std::move(array));
  return [all, next = std::size_t{0}]() mutable -> std::optional<std::string> {
    if (next == all->size()) return std::nullopt;
    return json_line((*all)[next++]);
  };
}

NextText lines_of(const std::string& body) {
  return [&body, at = std::size_t{0}]() mutable -> std::optional<std::string> {
    while (at < body.size()) {
      const std::size_t end = std::min(body.find('\n', at), body.size());
      std::string line = body.substr(at, end - at);
      at = end + 1;
      if (line.find_first_not_of(" \t\r") != std::string::npos) return line;
    }
    return std::nullopt;
  };
}

// The answers to an array's elements as a JSON array, piece by piece because the whole may be long.
class ArrayOfAnswers {
 public:
  explicit ArrayOfAnswers(std::shared_ptr<Answers> answers) : answers_(std::move(answers)) {}

  bool ended() const { return ended_; }

  // The next piece, which is the whole text if it is short. Throws as Answers::next().
  std::string next() {
    std::string piece;
    while (!ended_ && piece.size() < kPieceBytes) {
      const auto line = answers_->next();
      ended_ = !line;
      if (line) piece += std::exchange(separator_, ",\n") + *line;
    }
    if (ended_) piece += *separator_ == '[' ? "[]\n" : "]\n";
    return piece;
  }

 private:
  static constexpr std::size_t kPieceBytes = 65536;

  std::shared_ptr<Answers> answers_;
  const char* separator_ = "[";
  bool ended_ = false;
};

// Parses a body as an array of elements. Throws Refused 400.
Json array_in(const std::string& body) {
  data::RecordSlice slice;
  slice.text = body;
  slice.text.reserve(body.size() + data::kTextPadding);
  try {
    return data::value_of(slice);
  } catch (const data::InputFault& fault) {
    throw Refused(400, fault.what());
  }
}

HttpAnswer plain(const std::string& text, int status = 200) {
  HttpAnswer answer;
  answer.status = status;
  answer.type = "text/plain; charset=utf-8";
  answer.body = text;
  return answer;
}

HttpAnswer html(std::string text) {
  HttpAnswer answer;
  answer.type = "text/html; charset=utf-8";
  answer.body = std::move(text);
  answer.headers = {
      {"Content-Security-Policy", kPolicy}, {"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"}};
  return answer;
}

HttpAnswer refusal(const Refused& refused) {
  HttpAnswer answer = error_answer(refused.status(), refused.what());
  if (refused.status() == 429 || refused.status() == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

}  // namespace

Service::Service(ServiceOptions options) : options_(std::move(options)), connections_([] { return 0; }) {
  load();
  share_rest(0);
  share_memory();
  scheduler_ = std::make_unique<Scheduler>(options_.scheduling);
}

Service::~Service() = default;

void Service::load() {
  RecordModelOptions model = options_.model;
  model.memory_limit = 0;  // requests are checked against the limit one by one
  document_ = read_model_config(model.model);
  TextEncoderOptions texts;
  texts.model = model.model;
  texts.vocab = model.vocab;
  texts.splitter = model.splitter;
  texts.max_long_tokens = options_.max_long_tokens;
  if (answers_records(model.model)) {
    records_ = std::make_unique<RecordModel>(kServe, model);
    device_ = records_->device();
    try {
      texts_ = std::make_unique<TextEncoder>(kServe, texts, *records_->running().model.encoder);
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      no_texts_ = error.what();
    }
  } else {
    texts.device = device_ = open_device(model.device).device;
    texts.types = chosen_types(model.compute, model.scores, texts.device);
    texts_ = std::make_unique<TextEncoder>(kServe, texts);
  }
  options_.scheduling.second_thread = device_ == Device::cpu;
  asking_.records = records_.get();
  asking_.texts = texts_.get();
  asking_.vocabulary = records_ != nullptr ? &records_->tokenizer() : &texts_->tokenizer();
  if (texts_ != nullptr) texts_->encode("a", kServe);  // loads code and packs weights before the first request
}

// The memory limit less what the process holds, and less what its threads and requests will take.
void Service::share_memory() {
  bytes_of([] {});  // before threads compute
  const std::int64_t limit = options_.model.memory_limit;
  if (limit <= 0) return;
  if (device_ != Device::cpu) fail_usage(kServe, "--memory-limit: expected a model on the processor");
  // Fixed thresholds: otherwise both would grow by themselves, and the threads' heaps would keep freed memory, each as
  // much as its largest request took.
  constexpr int kKeptByHeap = 128 << 10;
  ::mallopt(M_MMAP_THRESHOLD, kKeptByHeap);
  ::mallopt(M_TRIM_THRESHOLD, kKeptByHeap);
  std::int64_t& bodies = options_.http.all_bodies_bytes;
  bodies = std::max(options_.http.body_bytes, std::min(bodies, limit / 32));  // all bodies: a 32nd
  const std::int64_t held = memory_ledger::report().total + bytes_beside_buffers();
  const std::int64_t beside =
      bytes_of_computing() + kConnectionBytes * options_.http.connections + kTimesOfBody * bodies;
  const std::int64_t rest = limit - held - beside;
  if (rest <= 0) {
    fail(kServe,
         "the memory limit of {} is too low: the model takes {}, threads and {} of requests {} (expected more, or a "
         "smaller --max-body or --max-connections)",
         byte_size_text(limit), byte_size_text(held), byte_size_text(bodies), byte_size_text(beside));
  }
  share_rest(rest);
}

// Divides the rest between reading and computing; 0: no limit. Reading gets no more than requests can need.
void Service::share_rest(std::int64_t rest) {
  constexpr std::int64_t kPartOfReading = 4, kPartOfLists = 8, kOfBodyByte = 200;
  const std::int64_t body = options_.http.body_bytes;
  const std::int64_t reading = std::min(rest / kPartOfReading, kOfItem + kOfBodyByte * body);
  const std::int64_t lists = std::min(rest / kPartOfLists, kOfArrayByte * body);
  reading_ = std::make_unique<MemoryBudget>(reading, options_.scheduling.wait_seconds);
  lists_ = std::make_unique<MemoryBudget>(lists, options_.scheduling.wait_seconds);
  options_.scheduling.memory = asking_.memory = rest - reading - lists;
}

std::string Service::description() const {
  const std::string task = records_ != nullptr ? records_->task() : "no task with answers to single records";
  return fmt::format(
      "{}: {}{}", options_.model.model.string(), task,
      options_.scheduling.memory > 0 ? ", " + byte_size_text(options_.scheduling.memory) + " for computing" : "");
}

std::string Service::unavailable(const std::string& path) const {
  if (path == "/encode" && texts_ == nullptr) return no_texts_;
  const DocumentUse use = records_ != nullptr ? document_use(records_->task()) : DocumentUse::none;
  if (path == "/predict" && records_ == nullptr) return "the model has no answers to single records";
  if (path == "/ask" && use != DocumentUse::ask) return "expected a model of a task with questions about documents";
  if (path == "/keyphrases" && use != DocumentUse::keyphrases) return "expected a model of key phrases (openkp)";
  if (path == "/attention" && use == DocumentUse::none) return "expected a model of a task that reads documents";
  return "";
}

// Refuses senders without access.
std::optional<HttpAnswer> Service::refuse_sender(const HttpRequest& request) const {
  // Otherwise a page of another site, in a browser on this machine, could send requests on behalf of the user.
  if (!request.origin.empty() && request.origin != "http://" + request.host &&
      request.origin != "https://" + request.host)
    return error_answer(403, "Origin: expected this server's own page");
  if (is_loopback(options_.host) && !request.host.empty() && !is_loopback(name_in(request.host)) &&
      name_in(request.host) != options_.host)
    return error_answer(403, "Host: expected localhost or 127.0.0.1");
  const Endpoint* const endpoint = endpoint_of(request.path);
  if (options_.token.empty() || (endpoint != nullptr && endpoint->open)) return std::nullopt;
  const std::string bearer = "Bearer ";  // compared case-insensitively
  if (::strncasecmp(request.authorization.c_str(), bearer.c_str(), bearer.size()) == 0 &&
      same_secret(request.authorization.substr(bearer.size()), options_.token))
    return std::nullopt;
  HttpAnswer answer = error_answer(401, "expected a header Authorization: Bearer <the server's token>");
  answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

std::optional<HttpAnswer> Service::refuse(const HttpRequest& request) {
  if (auto refused = refuse_sender(request)) return refused;
  const Endpoint* const endpoint = endpoint_of(request.path);
  if (endpoint == nullptr) {
    std::string paths;
    for (const Endpoint& known : kEndpoints) paths += fmt::format("{}{}", paths.empty() ? "" : ", ", known.path);
    return error_answer(404, "there is no such path: expected one of " + paths);
  }
  if (request.method != endpoint->method && !(request.method == "HEAD" && endpoint->make == nullptr)) {
    HttpAnswer answer = error_answer(405, fmt::format("{}: expected {}", endpoint->path, endpoint->method));
    answer.headers.emplace_back("Allow", endpoint->method);
    return answer;
  }
  if (endpoint->make == nullptr) return std::nullopt;
  if (const std::string why = unavailable(endpoint->path); !why.empty())
    return error_answer(404, endpoint->path + (": " + why));
  if (request.type != kJson && request.type != kLines)
    return error_answer(415, fmt::format("Content-Type: expected {} or {}", kJson, kLines));
  return std::nullopt;
}

HttpAnswer Service::answer(const HttpRequest& request) {
  const Endpoint& endpoint = *endpoint_of(request.path);
  if (endpoint.make == nullptr) return read(request);
  try {
    return compute(request);
  } catch (const Refused& refused) {
    return refusal(refused);
  }
}

HttpAnswer Service::read(const HttpRequest& request) {
  if (request.path == "/") return html(page());
  if (request.path == "/health/live") return plain("ok\n");
  if (request.path == "/health/ready") return stopping_ ? plain("stopping\n", 503) : plain("ok\n");
  if (request.path == "/metrics") {
    HttpAnswer answer = plain(metrics_.text(scheduler_->counts(), connections_()));
    answer.type = "text/plain; version=0.0.4; charset=utf-8";
    return answer;
  }
  HttpAnswer answer;
  answer.body = text::one_line(info()) + "\n";
  return answer;
}

HttpAnswer Service::compute(const HttpRequest& request) {
  const std::size_t first = request.body.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) throw Refused(400, "the request's body is empty: expected JSON");
  const bool lines = request.type == kLines, array = request.body[first] == '[';
  if (!lines && !array) return answer_alone(request);
  if (endpoint_of(request.path)->make == &attention_item) throw Refused(422, "expected one JSON object");
  return lines ? answer_lines(request) : answer_array(request);
}

std::int64_t Service::bytes_of_text(const std::string& path, const std::string& text) const {
  TextCost cost = endpoint_of(path)->cost;
  const bool of_records = path != "/encode" && path != "/tokenize";
  if (of_records && (records_->task() == "nq" || records_->task() == "squad")) cost.of_byte *= kTimesInWindows;
  const auto marks = std::count_if(text.begin(), text.end(), [](char c) { return c == '<' || c == '\\'; });
  return kOfItem + cost.of_byte * std::ssize(text) + cost.of_mark * marks;
}

HttpAnswer Service::answer_alone(const HttpRequest& request) {
  const Endpoint& endpoint = *endpoint_of(request.path);
  const std::int64_t bytes = bytes_of_text(request.path, request.body);
  const auto memory = std::make_shared<MemoryBudget::Part>(reading_->take(bytes, request.left));
  const MakeItem make = [&](std::string text, const std::string& what) {
    return endpoint.make(asking_, std::move(text), what);
  };
  std::string text = answer_one(*scheduler_, make, request.body, request.left);
  HttpAnswer answer;
  if (endpoint.make == &attention_item) {
    answer = html(std::move(text));
  } else {
    answer.body = std::move(text) + "\n";
  }
  answer.kept = memory;
  return answer;
}

std::shared_ptr<Answers> Service::answers_to(const HttpRequest& request, NextText texts) {
  const Endpoint& endpoint = *endpoint_of(request.path);
  const MakeItem make = [this, &endpoint](std::string text, const std::string& what) {
    return endpoint.make(asking_, std::move(text), what);
  };
  const TakeMemory take_memory = [this, &endpoint](const std::string& text) {
    return reading_->try_take(bytes_of_text(endpoint.path, text));
  };
  return std::make_shared<Answers>(*scheduler_, make, std::move(texts), take_memory, request.left);
}

HttpAnswer Service::answer_lines(const HttpRequest& request) {
  // The connection outlives the answer, and so does the request.
  const auto answers = answers_to(request, lines_of(request.body));
  auto begun =
      std::make_shared<std::optional<std::string>>(answers->next());  // throws 429 while the status can be sent
  HttpAnswer answer;
  answer.type = kLines;
  answer.pieces = [answers, begun]() -> std::optional<std::string> {
    auto line = *begun ? std::exchange(*begun, std::nullopt) : answers->next();
    if (line) *line += '\n';
    return line;
  };
  return answer;
}

HttpAnswer Service::answer_array(const HttpRequest& request) {
  HttpAnswer answer;
  answer.kept =
      std::make_shared<MemoryBudget::Part>(lists_->take(kOfArrayByte * std::ssize(request.body), request.left));
  const auto array = std::make_shared<ArrayOfAnswers>(answers_to(request, elements_of(array_in(request.body))));
  answer.body = array->next();  // may throw 429
  if (array->ended()) return answer;
  const auto begun = std::make_shared<std::string>(std::move(answer.body));
  answer.pieces = [array, begun]() -> std::optional<std::string> {
    if (!begun->empty()) return std::exchange(*begun, "");
    if (array->ended()) return std::nullopt;
    return array->next();
  };
  return answer;
}

Json Service::info() const {
  const EncoderConfig& model = texts_ != nullptr ? texts_->model() : *records_->running().model.config;
  const DocumentUse use = records_ != nullptr ? document_use(records_->task()) : DocumentUse::none;
  Json endpoints = Json::array();
  for (const Endpoint& endpoint : kEndpoints) {
    if (unavailable(endpoint.path).empty()) endpoints.push_back(endpoint.path);
  }
  Json limits = {{"body_bytes", options_.http.body_bytes},
                 {"connections", options_.http.connections},
                 {"waiting", options_.scheduling.waiting},
                 {"wait_seconds", options_.scheduling.wait_seconds},
                 {"batch_tokens", options_.scheduling.batch_tokens}};
  if (texts_ != nullptr) limits["text_tokens"] = texts_->longest();
  if (options_.scheduling.memory > 0) limits["memory_bytes"] = options_.scheduling.memory;
  return {{"program", std::string("etc ") + program_version()},
          {"model", options_.model.model.lexically_normal().filename().string()},
          {"task", records_ != nullptr ? Json(records_->task()) : Json()},
          {"documents", use == DocumentUse::ask          ? Json("ask")
                        : use == DocumentUse::keyphrases ? Json("keyphrases")
                                                         : Json()},
          {"encoder", model.to_json()},
          {"vocabulary",
           {{"kind", asking_.vocabulary->kind()},
            {"sha256", asking_.vocabulary->vocab_sha256()},
            {"pieces", asking_.vocabulary->vocab_size()}}},
          {"endpoints", std::move(endpoints)},
          {"limits", std::move(limits)}};
}

void Service::answered(const HttpRequest& request, int status, double seconds) {
  metrics_.count(endpoint_of(request.path) != nullptr ? request.path : "other", status, seconds);
}

}  // namespace etc::serve
