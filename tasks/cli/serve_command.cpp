// etc serve: a model behind HTTP.
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "etc_core/base/byte_size.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/signals.h"
#include "etc_core/nn/backends.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/compute_option.h"
#include "tasks/cli/config_options.h"
#include "tasks/cli/device_option.h"
#include "tasks/cli/memory_option.h"
#include "tasks/cli/processes.h"
#include "tasks/cli/threads_option.h"
#include "tasks/serve/service.h"
#include "tasks/train/model_folder.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

constexpr const char* kServeWhere = "etc serve";
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr std::int64_t kMostSeconds = 86400, kMostPort = 65535;

constexpr const char* kEndpoints =
    R"(Endpoints: / (a page), /predict /ask /keyphrases /encode /tokenize /attention (POST, JSON or lines of it), /info
/metrics /health/live /health/ready (tasks/serve/README.md)
Examples:
  etc serve --model run --port 8080
  curl --json '{"document": "The harbour is old.", "question": "What is old?"}' http://127.0.0.1:8080/ask
  curl -H 'Content-Type: application/x-ndjson' --data-binary @dev.jsonl http://127.0.0.1:8080/predict)";

struct ServeOptions {
  std::string model, vocab, splitter, token_file, max_body = "4MB";
  std::string device = kDefaultDevice, compute = kDefaultCompute, scores = kDefaultScores, memory_limit;
  std::string host = "127.0.0.1";
  std::int64_t port = 8080;
  std::int64_t max_long_tokens = 0, waiting = 256, connections = 256, read_seconds = 30, wait_seconds = 300;
  int threads = 0;
  GivenOptions given;  // decoding keys of section task
};

// The file's first line without surrounding white space.
std::string token_in(const std::string& file) {
  if (file.empty()) return "";
  constexpr std::uint64_t kMostBytes = 4096;
  std::string text = read_file(file, kMostBytes);
  text = text.substr(0, text.find('\n'));
  const std::size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  if (first == std::string::npos) fail(file, "expected a token in the first line, got none");
  return text.substr(first, last - first + 1);
}

serve::ServiceOptions service_options(const ServeOptions& options) {
  serve::ServiceOptions service;
  service.model.model = options.model;
  service.model.vocab = options.vocab;
  service.model.splitter = options.splitter;
  service.model.task = options.given->value("task", Json::object());
  service.model.device = options.device;
  service.model.compute = options.compute;
  service.model.scores = options.scores;
  service.model.memory_limit = take_memory_limit(options.memory_limit, open_device(options.device).device);
  service.max_long_tokens = options.max_long_tokens;
  service.token = token_in(options.token_file);
  service.host = options.host;
  service.scheduling.waiting = options.waiting;
  service.scheduling.wait_seconds = static_cast<double>(options.wait_seconds);
  service.http.connections = options.connections;
  service.http.body_bytes = parse_byte_size(options.max_body, "--max-body");
  service.http.read_seconds = static_cast<double>(options.read_seconds);
  return service;
}

void check_paths(const ServeOptions& options) {
  CommandPaths paths(kServeWhere);
  paths.reads_model("--model", options.model);
  paths.reads("--vocab", options.vocab);
  paths.reads_splitter("--splitter", options.splitter);
  paths.reads("--token-file", options.token_file);
  paths.check();
}

// The host as written in a URL: an IPv6 address is in brackets.
std::string in_address(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

void run_serve(const ServeOptions& options) {
  require_one_process(kServeWhere, "it");
  check_paths(options);
  if (options.threads > 0) set_thread_count(options.threads);
  const StopSignal stop_signal;
  serve::Service service(service_options(options));
  serve::HttpServer server(service, service.http_limits());
  service.count_connections_by([&] { return server.connections(); });
  const int port = server.listen(options.host, static_cast<int>(options.port));
  if (options.token_file.empty() && options.host != "127.0.0.1" && options.host != "localhost" && options.host != "::1")
    log::warn("whoever reaches {} may ask: --token-file asks for a token", options.host);
  std::unique_ptr<std::thread> accepting;
  {
    const SignalsBlocked for_thread;
    accepting = std::make_unique<std::thread>([&] { server.run(); });
  }
  log::info("serving {} at http://{}:{}/", service.description(), in_address(options.host), port);
  while (!StopSignal::requested()) std::this_thread::sleep_for(kLook);
  log::info("{}: answering what was asked, then the end", StopSignal::name());
  service.stop();
  server.stop();
  accepting->join();
  log_peak_memory(open_device(options.device).device);
}

}  // namespace

void add_serve_command(Program& program) {
  program.add("serve", "answer requests over HTTP, with a page to ask from", [](const Command& command) {
    auto options = std::make_shared<ServeOptions>();
    command.option("--model", options->model, "model folder, or a run, whose best checkpoint is taken").required();
    command.option("--host", options->host, "address or name to listen at; 0.0.0.0: all of this machine's")
        .show_default();
    command.option("--port", options->port, "port; 0: any free one").at_least(0).at_most(kMostPort).show_default();
    command.option("--token-file", options->token_file,
                   "require the token in this file's first line (Authorization: Bearer TOKEN)");
    command.option("--max-body", options->max_body, "largest size of a request's body").show_default();
    command.option("--max-waiting", options->waiting, "most waiting requests; one more is refused (429)")
        .at_least(1)
        .show_default();
    command.option("--wait-seconds", options->wait_seconds, "most seconds that a request waits (503)")
        .at_least(1)
        .at_most(kMostSeconds)
        .show_default();
    command.option("--read-seconds", options->read_seconds, "seconds within which a whole request must arrive (408)")
        .at_least(1)
        .at_most(kMostSeconds)
        .show_default();
    command.option("--max-connections", options->connections, "most open connections; one more is refused (503)")
        .at_least(1)
        .show_default();
    command
        .option("--max-long-tokens", options->max_long_tokens,
                "of /encode: most tokens of a text, special ones included [4096, or what the model has room for]")
        .at_least(1);
    command.option("--vocab", options->vocab, "the vocabulary of the model's data, if its folder does not hold it");
    command.option("--splitter", options->splitter,
                   "punkt:DIR when the model's data used Punkt and its folder holds no tables");
    add_compute_option(command, options->compute);
    add_score_option(command, options->scores);
    add_device_option(command, options->device);
    add_memory_option(command, options->memory_limit,
                      "chooses how many tokens are in memory at a time, and refuses what does not fit (413)");
    add_threads_option(command, options->threads);
    options->given = add_config_options(command, [](const ConfigKey& key) { return key.decoding; });
    command.footer(kEndpoints);
    command.action([options] {
      options->model = model_folder(options->model);
      run_serve(*options);
    });
  });
}

}  // namespace etc::cli
