#include "tasks/library/entry.h"

#include <new>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/error_text.h"
#include "etc_core/base/machine_share.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/signals.h"
#include "etc_core/base/version.h"
#include "etc_core/nn/backends.h"
#include "tasks/train/stop_signal.h"

namespace longetc {

namespace {

// Carries an exception of the caller's own function through the library, instead of an Error.
struct CallersException {
  std::exception_ptr thrown;
};

}  // namespace

Error::~Error() = default;

const char* version() noexcept {
  return etc::program_version();
}

void set_threads(int count) {
  guarded([&] {
    if (count < 0) etc::fail_usage("threads", "expected 0 (all processors) or more, got {}", count);
    etc::set_thread_count(count > 0 ? count : etc::default_thread_count());
  });
}

int threads() {
  return guarded([] { return etc::thread_count(); });
}

void set_log(std::function<void(Level, const std::string&)> receiver) {
  guarded([&] {
    if (!receiver) return etc::log::to_receiver({});
    etc::log::to_receiver([receiver = std::move(receiver)](bool warning, const std::string& message) {
      receiver(warning ? Level::warning : Level::info, message);
    });
  });
}

KeptHandlers::KeptHandlers() {
  sigaction(SIGHUP, nullptr, &hangup_);
  sigaction(SIGPIPE, nullptr, &pipe_);
}

KeptHandlers::~KeptHandlers() {
  sigaction(SIGHUP, &hangup_, nullptr);
  sigaction(SIGPIPE, &pipe_, nullptr);
}

LongCall::LongCall(const Progress& progress)
    : progress_(progress), receiver_([this](const etc::ProgressReport& report) { receive(report); }) {}

void LongCall::receive(const etc::ProgressReport& report) {
  if (!progress_) return;
  const std::lock_guard lock(mutex_);
  if (!stopped_) {
    try {
      stopped_ = !progress_({report.what, report.unit, report.note, report.done, report.total});
    } catch (...) {
      thrown_ = std::current_exception();
      stopped_ = true;
    }
  }
  if (stopped_) etc::StopSignal::request();
}

void LongCall::report(const ProgressReport& report) {
  receive({report.what, report.unit, report.note, report.done, report.total});
  if (stopped_) throw etc::Interrupted(report.what + ": stopped by the caller");
}

void LongCall::rethrow() const {
  if (thrown_) throw CallersException{thrown_};
}

void make_ready() {
  static const bool done = [] {
    etc::require_supported_cpu();
    etc::register_cpu_backend();
    etc::log::to_receiver({});
    return true;
  }();
  (void)done;
  etc::use_signal_stack();
}

void throw_as_own() {
  try {
    throw;
  } catch (const CallersException& exception) {
    std::rethrow_exception(exception.thrown);
  } catch (const Error&) {
    throw;
  } catch (const etc::Interrupted& error) {
    throw Error(Error::Kind::interrupted, error.what());
  } catch (const etc::UsageError& error) {
    throw Error(Error::Kind::usage, error.what());
  } catch (const std::bad_alloc&) {
    throw Error(Error::Kind::failure, "longetc: out of memory");
  } catch (const std::exception& error) {
    throw Error(Error::Kind::failure, etc::error_text(error));
  }
}

}  // namespace longetc
