// The HTTP service of a model: endpoints, access checks, and the model. No sockets.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "etc_core/base/json.h"
#include "tasks/inference/record_model.h"
#include "tasks/inference/text_encoder.h"
#include "tasks/serve/answers.h"
#include "tasks/serve/http_server.h"
#include "tasks/serve/items.h"
#include "tasks/serve/memory_budget.h"
#include "tasks/serve/metrics.h"
#include "tasks/serve/scheduler.h"

namespace etc::serve {

struct ServiceOptions {
  RecordModelOptions model;          // its memory_limit is that of the whole process
  std::int64_t max_long_tokens = 0;  // as in TextEncoderOptions
  std::string token;                 // that requests must carry; empty: none
  std::string host = "127.0.0.1";    // the server's address
  SchedulerLimits scheduling;        // memory is chosen by the service
  HttpLimits http;                   // so is all_bodies_bytes, if memory is limited
};

class Service final : public HttpHandler {
 public:
  // Loads the model. Throws as RecordModel and TextEncoder do; Error if the memory limit leaves too little for
  // answering.
  explicit Service(ServiceOptions options);
  ~Service() override;

  const HttpLimits& http_limits() const { return options_.http; }
  void count_connections_by(std::function<std::int64_t()> connections) { connections_ = std::move(connections); }
  std::string description() const;  // what it serves, a human-readable line

  // From now on the service is not ready; requests already accepted are still answered.
  void stop() { stopping_ = true; }

  std::optional<HttpAnswer> refuse(const HttpRequest& request) override;
  HttpAnswer answer(const HttpRequest& request) override;
  void answered(const HttpRequest& request, int status, double seconds) override;

 private:
  void load();
  void share_memory();
  void share_rest(std::int64_t rest);
  std::string unavailable(const std::string& path) const;  // why the model has no such endpoint; empty: it has
  std::optional<HttpAnswer> refuse_sender(const HttpRequest& request) const;
  HttpAnswer read(const HttpRequest& request);                                         // GET
  HttpAnswer compute(const HttpRequest& request);                                      // POST
  std::int64_t bytes_of_text(const std::string& path, const std::string& text) const;  // while it is read and answered
  HttpAnswer answer_alone(const HttpRequest& request);
  HttpAnswer answer_lines(const HttpRequest& request);
  HttpAnswer answer_array(const HttpRequest& request);
  std::shared_ptr<Answers> answers_to(const HttpRequest& request, NextText texts);
  Json info() const;

  ServiceOptions options_;
  Json document_;  // the model's config.json
  std::unique_ptr<RecordModel> records_;
  std::unique_ptr<TextEncoder> texts_;
  std::string no_texts_;  // why there is no text encoder
  Device device_ = Device::cpu;
  Asking asking_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<MemoryBudget> reading_, lists_;  // for texts and the data made from them, and for arrays
  Metrics metrics_;
  std::function<std::int64_t()> connections_;
  std::atomic<bool> stopping_{false};
};

}  // namespace etc::serve
