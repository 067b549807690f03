// The forecast of memory against the ledger of the same computation.
#include "etc_core/nn/count_memory.h"
#include "etc_core/nn/backends.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "etc_core/base/counting.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/profiler.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/nn/random_input.h"
#include "etc_core/optim/optimizer.h"
#include "tests/support/catch.h"
#include "tests/support/small_config.h"

using namespace etc;

namespace {

constexpr std::int64_t kLength = 700, kTokensPerGlobal = 16;

EtcConfig small_model(bool residual, std::int64_t period) {
  EtcConfig config = test::small_config({.vocabulary = 1000,
                                         .hidden = 128,
                                         .layers = 3,
                                         .heads = 4,
                                         .inner = 512,
                                         .radius = 30,
                                         .distance = 12,
                                         .labels = 32});
  config.use_residual_attention = residual;
  config.grad_checkpointing_period = period;
  return config;
}

EncoderInput input_for(const EtcConfig& model) {
  return random_input(model, kLength, kTokensPerGlobal);
}

// A forward pass and, when training, its backward pass; parameters are not updated.
void compute(EtcEncoder& encoder, const EncoderInput& input, bool training, ComputeType type) {
  Tape tape(training ? Recording::on : Recording::off);
  ForwardOptions options;
  options.training = training;
  options.compute = type;
  EncoderStates states = encoder.forward(tape, input, options);
  if (!training) return;
  for (Var* var : {&states.long_states, &states.global_states}) {
    std::fill_n(var->grad().data(), counting() ? 0 : var->grad().size(), 1e-3f);
  }
  states = {};
  tape.backward();
}

// Peak of a second call according to the ledger; may run in counting mode.
MemoryReport peak_of(const EtcConfig& config, const EncoderInput& input, bool training,
                     ComputeType type = ComputeType::fp32) {
  ParameterSet parameters;
  EtcEncoder encoder(config, parameters);
  if (counting()) {
    for (const auto& parameter : parameters.all()) parameter->allocate();
  } else {
    parameters.initialize(1);
  }
  if (!training) encoder.release_kernels();
  for (int call = 0; call < 2; ++call) {
    parameters.drop_gradients();
    memory_ledger::reset_peak();
    compute(encoder, input, training, type);
  }
  return memory_ledger::report();
}

// Calls, useful operations and bytes of each operator.
using Work = std::map<std::string, std::tuple<std::int64_t, double, double>>;

Work work_of(const EtcConfig& config, const EncoderInput& input, bool training) {
  profiler::start();
  peak_of(config, input, training);
  profiler::stop();
  Work work;
  for (const profiler::Row& row : profiler::rows()) work[row.name] = {row.calls, row.work.operations, row.work.bytes};
  return work;
}

// The memory that the forecast does not count: padded tiles of products in every worker thread, at most 64 rows of the
// widest input and of a panel, and the same again if the thread's arena grew in two steps.
std::int64_t left_out(const EtcConfig& config) {
  return 2 * 64 * (config.intermediate_size + 192 + 4096) * 4 * thread_count();
}

}  // namespace

TEST_CASE("the forecast of memory is what the ledger then measures", "[nn][plain]") {
  register_cpu_backend();
  std::printf("forecast and measured peak, MB:");
  constexpr std::pair<bool, ComputeType> kCalls[] = {
      {false, ComputeType::fp32}, {true, ComputeType::fp32}, {true, ComputeType::bf16}};
  for (const auto& [training, type] : kCalls) {
    if (!cpu_offers(type)) continue;
    for (const bool residual : {false, true}) {
      for (const std::int64_t period : {0, 1}) {
        if (!training && period > 0) continue;
        CAPTURE(training, compute_type_name(type), residual, period);
        const EtcConfig config = small_model(residual, period);
        const EncoderInput input = input_for(config);
        const auto peak = [&, training = training, type = type] { return peak_of(config, input, training, type); };
        const MemoryReport expected = count_memory([&] { peak(); });
        const MemoryReport measured = peak();
        std::printf(" %.1f/%.1f", static_cast<double>(expected.peak) / 1e6, static_cast<double>(measured.peak) / 1e6);
        for (int p = 0; p < kPurposeCount; ++p) {
          CAPTURE(purpose_name(static_cast<Purpose>(p)), expected.at_peak[p], measured.at_peak[p]);
          if (p == static_cast<int>(Purpose::scratch)) {
            CHECK(std::abs(measured.at_peak[p] - expected.at_peak[p]) <= left_out(config));
          } else {
            CHECK(measured.at_peak[p] == expected.at_peak[p]);
          }
        }
        CHECK(measured.peak > 4'000'000);  // something was computed
      }
    }
  }
  std::printf("\n");
}

TEST_CASE("the work per operator that is counted is the work that is then done", "[nn][plain]") {
  register_cpu_backend();
  for (const bool training : {false, true}) {
    for (const std::int64_t period : {0, 1}) {
      if (!training && period > 0) continue;
      CAPTURE(training, period);
      const EtcConfig config = small_model(true, period);
      const EncoderInput input = input_for(config);
      Work expected;
      count_memory([&] { expected = work_of(config, input, training); });
      CHECK(expected == work_of(config, input, training));
      CHECK(expected.contains(training ? "long_attention_backward" : "long_attention"));
    }
  }
}

TEST_CASE("memory counted from the sizes of labels is that of labels with values", "[nn]") {
  register_cpu_backend();
  constexpr std::int64_t kLong = 4100;  // more than two samples, and not a multiple of blocks or groups
  for (const bool hard : {false, true}) {
    for (const bool training : {false, true}) {
      CAPTURE(hard, training);
      EtcConfig config = small_model(true, 0);
      config.use_hard_g2l_mask = config.use_hard_l2g_mask = hard;
      const MemoryReport expected = count_memory([&] {
        const EncoderInput input = random_input(config, kLong, kTokensPerGlobal);
        peak_of(config, input, training);
      });
      const MemoryReport counted = count_memory([&] {
        const CountedInput input(config, kLong, kTokensPerGlobal);
        peak_of(config, input.input(), training);
      });
      CHECK(counted.peak == Approx(expected.peak).epsilon(0.005));
      for (int p = 0; p < kPurposeCount; ++p) {
        CAPTURE(purpose_name(static_cast<Purpose>(p)));
        // Groups at the ends of an input see less than the middle one.
        CHECK(counted.at_peak[p] == Approx(expected.at_peak[p]).epsilon(0.02));
      }
    }
  }
}

TEST_CASE("counting a long input needs no memory for its labels", "[nn]") {
  register_cpu_backend();
  const EtcConfig config = small_model(false, 0);
  const std::int64_t resident = memory_ledger::process_peak_bytes();
  const MemoryReport counted = count_memory([&] {
    const CountedInput input(config, 200'000, kTokensPerGlobal);
    peak_of(config, input.input(), false);
  });
  // 200,000 x 12,500 pairs, twice, a byte each and as much again for the tiles.
  CHECK(counted.at_peak[static_cast<int>(Purpose::labels)] > 5'000'000'000);
  CHECK(memory_ledger::process_peak_bytes() - resident < 100'000'000);
}

TEST_CASE("counting memory computes nothing and leaves nothing behind", "[nn]") {
  register_cpu_backend();
  memory_ledger::reset_peak();
  const std::int64_t before = memory_ledger::report().total;
  // Far more than any machine has. It is only reserved, so no error occurs and no page is touched.
  const std::int64_t huge = std::int64_t{1} << 40;
  const std::int64_t resident = memory_ledger::process_peak_bytes();
  const MemoryReport report = count_memory([&] {
    CHECK(counting());
    const Tensor tensor = Tensor::zeros({huge / 4}, Purpose::activations);
  });
  CHECK(!counting());
  CHECK(report.at_peak[static_cast<int>(Purpose::activations)] == huge);
  CHECK(memory_ledger::process_peak_bytes() - resident < (std::int64_t{1} << 26));
  CHECK(memory_ledger::report().total == before);
  CHECK(memory_ledger::report().peak == before);

  // An exception in body() also ends counting.
  CHECK_THROWS_AS(count_memory([] { throw Error("stop"); }), Error);
  CHECK(!counting());
  const EtcConfig config = small_model(true, 0);
  CHECK(peak_of(config, input_for(config), false).peak > 0);
}

TEST_CASE("a forecast runs beside a computation: same bits, same forecast, and the ledger shows one of them",
          "[nn][plain]") {
  register_cpu_backend();
  const EtcConfig config = small_model(true, 1);
  const EncoderInput input = input_for(config);
  const auto forecast = [&] { return count_memory([&] { peak_of(config, input, true); }); };
  // Gradients of every parameter after a forward and a backward pass, and the peak of these.
  const auto computed = [&] {
    ParameterSet parameters;
    EtcEncoder encoder(config, parameters);
    parameters.initialize(1);
    memory_ledger::reset_peak();
    compute(encoder, input, true, ComputeType::fp32);
    MemoryReport report = memory_ledger::report();
    std::vector<std::vector<float>> gradients;
    for (const auto& parameter : parameters.all()) {
      if (parameter->grad) gradients.emplace_back(parameter->grad.data(), parameter->grad.data() + parameter->size());
    }
    return std::pair(report, gradients);
  };
  const auto alone = computed();
  REQUIRE(!alone.second.empty());
  const MemoryReport expected = forecast();
  const std::int64_t held = memory_ledger::report().total;

  std::atomic<bool> stop{false};
  std::atomic<int> forecasts{0};
  std::vector<MemoryReport> counted;
  std::thread counting_thread([&] {
    while (!stop || counted.size() < 2) {
      counted.push_back(forecast());
      ++forecasts;
    }
  });
  while (forecasts == 0) std::this_thread::yield();
  std::vector<std::remove_const_t<decltype(alone)>> beside;
  for (int i = 0; i < 3; ++i) beside.push_back(computed());
  stop = true;
  counting_thread.join();
  for (const auto& [report, gradients] : beside) {
    CHECK(gradients == alone.second);
    for (int p = 0; p < kPurposeCount; ++p) {
      CAPTURE(purpose_name(static_cast<Purpose>(p)));
      // Which threads take scratch depends on which were idle.
      if (p != static_cast<int>(Purpose::scratch)) CHECK(report.at_peak[p] == alone.first.at_peak[p]);
    }
  }
  CHECK(memory_ledger::report().total - held < left_out(config));
  // A forecast includes what the process holds when it begins, and so a part of the concurrent computation: it is at
  // least the forecast alone, and at most the sum of both.
  for (const MemoryReport& report : counted) {
    CHECK(report.peak > expected.peak - held);
    CHECK(report.peak <= expected.peak + alone.first.peak + left_out(config));
  }
}

TEST_CASE("several forecasts run side by side and tell the same", "[nn]") {
  register_cpu_backend();
  const EtcConfig config = small_model(false, 0);
  const EncoderInput input = input_for(config);
  const auto forecast = [&] { return count_memory([&] { peak_of(config, input, true); }); };
  const MemoryReport expected = forecast();
  std::vector<MemoryReport> counted(3);
  std::vector<std::thread> threads;
  for (MemoryReport& report : counted) threads.emplace_back([&] { report = forecast(); });
  for (std::thread& thread : threads) thread.join();
  for (const MemoryReport& report : counted) {
    for (int p = 0; p < kPurposeCount; ++p) {
      CAPTURE(purpose_name(static_cast<Purpose>(p)));
      if (p != static_cast<int>(Purpose::scratch)) CHECK(report.at_peak[p] == expected.at_peak[p]);
    }
    // A new thread has no working memory yet; that of this thread is included as held by the process.
    CHECK(report.at_peak[static_cast<int>(Purpose::scratch)] >= expected.at_peak[static_cast<int>(Purpose::scratch)]);
  }
}
