#include "etc_core/base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "etc_core/base/end_of_log.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log_receiver.h"
#include "etc_core/base/silence.h"

namespace etc::log {

namespace {

// The sink of also_to_file; null: none.
spdlog::sink_ptr& file_sink() {
  static spdlog::sink_ptr sink;
  return sink;
}

// If messages cannot be written (full disk, closed terminal), that is reported once.
void report_once(const std::string& what) {
  static std::atomic_flag told;
  if (!told.test_and_set()) std::fprintf(stderr, "warning: messages are lost: %s\n", what.c_str());
}

// The base class's mutex ensures one message at a time.
class ReceiverSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit ReceiverSink(std::function<void(bool, const std::string&)> receiver) : receiver_(std::move(receiver)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (receiver_) receiver_(message.level >= spdlog::level::warn, fmt::to_string(message.payload));
  }
  void flush_() override {}

  std::function<void(bool, const std::string&)> receiver_;
};

}  // namespace

void write_info(fmt::string_view format, fmt::format_args args) {
  if (!is_silent()) spdlog::info(fmt::vformat(format, args));
}
void write_warning(fmt::string_view format, fmt::format_args args) {
  if (!is_silent()) spdlog::warn(fmt::vformat(format, args));
}

void to_stderr() {
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("etc", sink);
  logger->set_pattern("%^%l%$: %v");
  logger->set_error_handler(report_once);
  spdlog::set_default_logger(logger);
}

void to_receiver(std::function<void(bool, const std::string&)> receiver) {
  auto logger = std::make_shared<spdlog::logger>("etc", std::make_shared<ReceiverSink>(std::move(receiver)));
  logger->set_error_handler([](const std::string&) {});
  spdlog::set_default_logger(logger);
}

void also_to_file(const std::filesystem::path& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
    sink->set_pattern("%Y-%m-%d %H:%M:%S %l: %v");
    auto& sinks = spdlog::default_logger()->sinks();
    std::erase(sinks, file_sink());  // of a run before this one in the same process
    sinks.push_back(sink);
    file_sink() = sink;
    spdlog::default_logger()->flush_on(spdlog::level::info);
  } catch (const spdlog::spdlog_ex& error) {
    fail(path.string(), "cannot open the log: {}", error.what());
  }
}

void end_file(const std::string& message, bool fault) {
  if (file_sink() == nullptr) return;
  spdlog::logger alone("etc", file_sink());
  alone.set_error_handler(report_once);
  alone.log(fault ? spdlog::level::err : spdlog::level::info, message);
  alone.flush();
}

}  // namespace etc::log
