#include "tasks/train/memory_fit.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "data/loader/order.h"
#include "etc_core/base/byte_size.h"
#include "etc_core/base/device_state.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/registry.h"
#include "tasks/train/forecast.h"
#include "tasks/train/plan.h"

namespace etc {

namespace {

// Configuration, data and limit, with values that several questions about them need.
class Fitting {
 public:
  Fitting(const RunConfig& config, Device device, std::int64_t limit)
      : config_(config), device_(device), limit_(limit) {
    const auto task = make_task(config.task, *config.model);
    data_ = open_run_data(config.data, *task);
    require_position_rows(config, data_, *task);
    steps_ = make_plan(config, *data_.train).total_steps;
    tokens_ = data::token_counts(*data_.train);
  }

  std::int64_t peak(const RunConfig& config) const { return forecast_training(config, data_, device_, steps_).peak(); }

  RunConfig choose() const {
    for (const std::int64_t period : periods()) {
      for (const std::int64_t tokens : micro_batches()) {
        RunConfig candidate = with(period, tokens);
        if (peak(candidate) <= limit_) return candidate;
      }
    }
    refuse();
  }

 private:
  RunConfig with(std::int64_t period, std::int64_t tokens) const {
    RunConfig config = config_;
    config.model->grad_checkpointing_period = period;
    config.training.micro_batch_tokens = tokens;
    return config;
  }

  std::vector<std::int64_t> periods() const {
    const std::int64_t configured = config_.model->grad_checkpointing_period;
    return configured == 1 ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{configured, 1};
  }

  // Micro-batch sizes to try: as configured, then halves of the run's largest, finally the longest example.
  std::vector<std::int64_t> micro_batches() const {
    const auto heaviest = data::heaviest_micro_batches(*data_.train, training_order(config_),
                                                       samples_to_look_at(config_.training, *data_.train, 1));
    std::int64_t largest = 0;
    for (const std::int64_t index : heaviest.examples.front()) largest += tokens_[static_cast<std::size_t>(index)];
    const std::int64_t longest = *std::max_element(tokens_.begin(), tokens_.end());
    std::vector<std::int64_t> limits = {config_.training.micro_batch_tokens};
    for (std::int64_t half = largest / 2; half > longest; half /= 2) limits.push_back(half);
    if (largest > longest) limits.push_back(longest);
    return limits;
  }

  [[noreturn]] void refuse() const {
    const RunConfig least = with(1, 1);
    std::vector<std::int64_t> order(tokens_.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const auto tokens_of = [&](std::int64_t index) { return tokens_[static_cast<std::size_t>(index)]; };
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return tokens_of(a) < tokens_of(b); });
    const auto taken = [&](std::int64_t index) { return forecast_single_example(least, data_, device_, index).peak(); };
    const auto longer =
        std::partition_point(order.begin(), order.end(), [&](std::int64_t index) { return taken(index) <= limit_; });
    const std::string limit = byte_size_text(limit_);
    if (longer == order.begin()) {
      fail("train",
           "the memory limit of {} is too low for this model: a batch of the shortest example, of {} tokens, takes {} "
           "with every layer checkpointed (take a smaller model)",
           limit, tokens_of(order.front()), byte_size_text(taken(order.front())));
    }
    const std::string longest = fmt::format(
        "the memory limit of {} does not hold the run, with any micro-batches and every layer checkpointed. With "
        "--batch-size 1 the longest example that fits has {} tokens",
        limit, tokens_of(*(longer - 1)));
    if (longer == order.end()) fail("train", "{}: all of them do (a smaller --batch-size needs less)", longest);
    fail("train",
         "{}; {} of {} are longer, up to {}, which take {} (prepare the data with shorter inputs, or take a "
         "smaller model)",
         longest, order.end() - longer, order.size(), tokens_of(order.back()), byte_size_text(taken(order.back())));
  }

  RunConfig config_;
  Device device_;
  std::int64_t limit_;
  RunData data_;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> tokens_;  // long and global ones of each example
};

// Whether a limit may have led from the configuration to this choice: micro-batches only become smaller, and
// checkpointing only extends to all layers. Otherwise the user wants a different run.
bool may_be_chosen(const RunConfig& choice, const RunConfig& config) {
  const std::int64_t tokens = choice.training.micro_batch_tokens, period = choice.model->grad_checkpointing_period;
  const std::int64_t tokens_before = config.training.micro_batch_tokens;
  const bool smaller = tokens == tokens_before || (tokens > 0 && (tokens_before == 0 || tokens < tokens_before));
  return smaller && (period == 1 || period == config.model->grad_checkpointing_period);
}

std::string choice_text(const RunConfig& config) {
  return fmt::format("--micro-batch-tokens {} --grad-checkpointing-period {}", config.training.micro_batch_tokens,
                     config.model->grad_checkpointing_period);
}

}  // namespace

ProcessMemory forecast_memory(const RunConfig& config, int processes) {
  const Device device = prepare_machine(config.training).device;
  const auto task = make_task(config.task, *config.model);
  const RunData data = open_run_data(config.data, *task);
  require_position_rows(config, data, *task);
  const std::int64_t steps = make_plan(config, *data.train).total_steps;
  return forecast_training(settle_compute(config, device, {}), data, device, steps, processes);
}

std::string fitting_text(const RunConfig& config, Device device) {
  try {
    const std::int64_t limit = memory_capacity(device);
    return choice_text(Fitting(config, prepare_machine(config.training).device, limit).choose()) +
           " is expected to fit";
  } catch (const Error&) {
    return "nothing is expected to fit (shorter examples or a smaller model need less)";
  }
}

const ParameterSet& require_room(const ParameterSet& parameters, Device device) {
  const auto bytes = 2 * static_cast<std::int64_t>(sizeof(float)) * parameters.count();
  if (const std::int64_t all = memory_capacity(device); bytes > all) {
    fail("train", "{} weights and their gradients take {}: expected at most the {} of the machine (a smaller model)",
         parameters.count(), byte_size_text(bytes), byte_size_text(all));
  }
  return parameters;
}

RunConfig fit_memory(const RunConfig& config, std::int64_t limit, const std::filesystem::path& run) {
  const Device device = prepare_machine(config.training).device;
  const RunConfig settled = settle_compute(config, device, run);
  const std::optional<RunConfig> before = config_to_go_on_with(run);
  if (!before) {
    const RunConfig chosen = Fitting(settled, device, limit).choose();
    log::info("memory limit {}: {}", byte_size_text(limit), choice_text(chosen));
    return chosen;
  }
  RunConfig kept = settled;
  kept.training.micro_batch_tokens = before->training.micro_batch_tokens;
  kept.model->grad_checkpointing_period = before->model->grad_checkpointing_period;
  const std::string asked = choice_text(settled), goes_on = choice_text(kept);
  if (!may_be_chosen(kept, settled)) {
    fail(run.string(),
         "the run goes on with {}, not with {}, which are other bits (leave them out; another --output starts a run of "
         "its own)",
         goes_on, asked);
  }
  if (const std::int64_t peak = Fitting(kept, device, limit).peak(kept); peak > limit) {
    fail(run.string(),
         "the run goes on with {}, which takes {}: more than the memory limit of {} (another --output "
         "starts a run of its own)",
         goes_on, byte_size_text(peak), byte_size_text(limit));
  }
  log::info("memory limit {}: as the run began, {}{}", byte_size_text(limit), goes_on,
            asked == goes_on ? "" : fmt::format(" instead of {}", asked));
  return kept;
}

}  // namespace etc
