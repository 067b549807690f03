#include "tasks/train/first_fault.h"

#include <string_view>
#include <vector>

#include "etc_core/base/error.h"

namespace etc {

namespace {

// What check_finite found, without naming itself.
std::string fault_text(const Error& error) {
  const std::string text = error.what();
  return text.starts_with("autograd: ") ? text.substr(10) : text;
}

// The fault that check_finite found in weights and moments between the steps, where it is not due to an operator.
std::string state_fault_text(const Error& error) {
  constexpr std::string_view kFound = "autograd: first bad operator: ";
  const std::string text = error.what();
  if (!text.starts_with(kFound)) throw;  // they could not be read, for example because the device was lost
  return text.substr(kFound.size());
}

void check_weights(const ParameterSet& parameters) {
  for (const auto& parameter : parameters.all()) check_finite("weights", parameter->name.c_str(), parameter->value);
}

// Of this process's micro-batches; "": none.
std::string first_fault(ParameterSet& parameters, const data::LoadedBatch& batch, const MicroBatchPass& pass) {
  parameters.drop_gradients();
  try {
    check_weights(parameters);
    for (const auto& micro_batch : batch.micro_batches) {
      Tape tape(Recording::on, FiniteChecks::on);
      pass(micro_batch, tape);
      parameters.drop_gradients();
    }
  } catch (const Error& error) {
    return fault_text(error);
  }
  return "";
}

}  // namespace

void require_sound_weights(const ParameterSet& parameters, std::int64_t step) {
  try {
    check_weights(parameters);
  } catch (const Error& error) {
    throw Diverged(fmt::format("train: after step {}: {}", step, state_fault_text(error)));
  }
}

void require_sound_tensors(Communicator& processes, const std::map<std::string, Tensor>& tensors, std::int64_t step) {
  std::string fault;
  try {
    for (const auto& [name, tensor] : tensors) check_finite("state", name.c_str(), tensor);
  } catch (const Error& error) {
    fault = state_fault_text(error);
  }
  fault = from_first(processes, fault);
  if (!fault.empty()) throw Diverged(fmt::format("train: after step {}: {}", step, fault));
}

void throw_first_fault(Communicator& processes, ParameterSet& parameters, const data::LoadedBatch& batch,
                       const MicroBatchPass& pass, std::int64_t step, const std::string& what) {
  std::string cause = "the replay found no bad operator: sums over the whole gradient exceed the range of numbers";
  const std::vector<std::string> faults = processes.gather(first_fault(parameters, batch, pass));
  for (auto fault = faults.rbegin(); fault != faults.rend(); ++fault) {
    if (!fault->empty()) cause = *fault;
  }
  throw Diverged(fmt::format("train: {} at step {}; {}", what, step, cause));
}

}  // namespace etc
