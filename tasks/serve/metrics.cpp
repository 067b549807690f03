#include "tasks/serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "etc_core/base/memory_ledger.h"

namespace etc::serve {

namespace {

// "# HELP name help", "# TYPE name type"
std::string heading(const char* name, const char* type, const char* help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

std::string number(const char* name, const char* type, const char* help, std::int64_t value) {
  return heading(name, type, help) + fmt::format("{} {}\n", name, value);
}

}  // namespace

void Metrics::count(const std::string& endpoint, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{endpoint, status}];
  Times& times = times_[endpoint];
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  ++times.buckets[static_cast<std::size_t>(bucket)];
  times.sum += seconds;
}

std::string Metrics::text(const SchedulerCounts& scheduler, std::int64_t connections) const {
  const std::lock_guard lock(mutex_);
  std::string out = heading("etc_requests_total", "counter", "Requests answered, by endpoint and status.");
  for (const auto& [key, count] : requests_) {
    out += fmt::format("etc_requests_total{{endpoint=\"{}\",status=\"{}\"}} {}\n", key.first, key.second, count);
  }
  out += heading("etc_request_seconds", "histogram", "Seconds from a request's first byte to the end of its answer.");
  for (const auto& [endpoint, times] : times_) {
    std::int64_t sum = 0;
    for (std::size_t b = 0; b < times.buckets.size(); ++b) {
      sum += times.buckets[b];
      const std::string bound = b < kBounds.size() ? fmt::format("{}", kBounds[b]) : "+Inf";
      out += fmt::format("etc_request_seconds_bucket{{endpoint=\"{}\",le=\"{}\"}} {}\n", endpoint, bound, sum);
    }
    out += fmt::format(
        "etc_request_seconds_sum{{endpoint=\"{0}\"}} {1}\netc_request_seconds_count{{endpoint=\"{0}\"}} {2}\n",
        endpoint, times.sum, sum);
  }
  out += number("etc_connections", "gauge", "Connections open now.", connections);
  out += number("etc_waiting", "gauge", "Computations that wait.", scheduler.waiting);
  out += number("etc_computing", "gauge", "Computations under way.", scheduler.computing);
  out += number("etc_batches_total", "counter", "Batches computed.", scheduler.batches);
  out += number("etc_batches_beside_long_total", "counter", "Of these beside a long request.", scheduler.beside_long);
  out += number("etc_computed_total", "counter", "Computations of requests in batches.", scheduler.jobs);
  out += number("etc_tokens_total", "counter", "Long and global tokens of them.", scheduler.tokens);
  out += number("etc_dropped_left_total", "counter", "Computations dropped: the client left.", scheduler.left);
  out += number("etc_dropped_late_total", "counter", "Computations dropped: they waited too long.", scheduler.late);
  out += number("etc_memory_buffers_bytes", "gauge", "Buffers held: weights and what is computed.",
                memory_ledger::report().total);
  out += number("etc_memory_peak_bytes", "gauge", "Most resident memory so far.", memory_ledger::process_peak_bytes());
  return out;
}

}  // namespace etc::serve
