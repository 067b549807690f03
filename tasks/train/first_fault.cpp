#include "tasks/train/first_fault.h"

#include <vector>

#include "etc_core/base/error.h"

namespace etc {

namespace {

// Of this process's micro-batches; "": none.
std::string first_fault(ParameterSet& parameters, const data::LoadedBatch& batch, const MicroBatchPass& pass) {
  parameters.drop_gradients();
  try {
    for (const auto& parameter : parameters.all()) check_finite("weights", parameter->name.c_str(), parameter->value);
    for (const auto& micro_batch : batch.micro_batches) {
      Tape tape(Recording::on, FiniteChecks::on);
      pass(micro_batch, tape);
      parameters.drop_gradients();
    }
  } catch (const Error& error) {
    const std::string cause = error.what();
    return cause.starts_with("autograd: ") ? cause.substr(10) : cause;
  }
  return "";
}

}  // namespace

void throw_first_fault(Communicator& processes, ParameterSet& parameters, const data::LoadedBatch& batch,
                       const MicroBatchPass& pass, std::int64_t step, const std::string& what) {
  std::string cause = "the replay found no bad operator: sums over the whole gradient exceed the range of numbers";
  const std::vector<std::string> faults = processes.gather(first_fault(parameters, batch, pass));
  for (auto fault = faults.rbegin(); fault != faults.rend(); ++fault) {
    if (!fault->empty()) cause = *fault;
  }
  throw Diverged(fmt::format(
      "train: {} at step {}; {} (checkpoints saved before this step are sound; try a smaller --learning-rate)", what,
      step, cause));
}

}  // namespace etc
