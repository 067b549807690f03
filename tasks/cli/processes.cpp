#include "tasks/cli/processes.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "data/dataset_info.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/crc32c.h"
#include "etc_core/base/error.h"
#include "etc_core/base/machine_share.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/silence.h"
#include "etc_core/comm/launch.h"
#include "tasks/train/agreement.h"

namespace etc::cli {

namespace {

std::unique_ptr<Communicator> g_joined;  // null: a single process

// The processors this process may run on, as the kernel lists them: "0-3,8".
std::string processor_list() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Cpus_allowed_list:")) return line;
  }
  return "";
}

// Launchers either bind processes to processors or let all use all of them: processes that may use the same processors
// share them.
int own_threads() {
  const std::string own = processes().host_of(processes().rank()) + " " + processor_list();
  const std::vector<std::string> all = processes().gather(own);
  const auto sharing = static_cast<int>(std::count(all.begin(), all.end(), own));
  return std::max(1, usable_processors() / sharing);
}

}  // namespace

Communicator& processes() {
  return g_joined ? *g_joined : one_process();
}

void join_others() {
  if (!launched_with_others()) return;
  g_joined = join_processes();
  if (!g_joined->first()) be_silent();
  const int threads = own_threads();
  if (std::getenv("OMP_NUM_THREADS") == nullptr) set_thread_count(threads);
}

void leave_others() {
  g_joined.reset();
}

void require_one_process(const std::string& where, const std::string& what) {
  if (processes().size() == 1) return;
  fail_usage(where, "expected one process, got {}: {} works without mpirun alone", processes().size(), what);
}

void require_equal_work(const Json& model, const Json& data) {
  Json own = program_identity();
  if (!data.is_null()) own["data"] = data;
  own["model"] = model;
  own["machine"] = {{"instruction set", instruction_set()}};
  require_agreement(processes(), own);
}

void require_equal_models(const ParameterSet& parameters, const Json& settings, const Json& data) {
  if (processes().size() == 1) return;
  std::uint32_t weights = 0;
  for (const auto& parameter : parameters.all()) {
    const Tensor value = parameter->value.to(Device::cpu);
    weights = crc32c(weights, value.data(), static_cast<std::size_t>(value.size()) * sizeof(float));
  }
  require_equal_work({{"weights", weights}, {"settings", settings}}, data);
}

DatasetPass agreed_pass(const DatasetPass& pass, const ParameterSet& parameters, const Json& settings) {
  DatasetPass agreed = pass;
  agreed.processes = &processes();
  if (processes().size() == 1) return agreed;
  agreed.micro_batch_tokens = std::stoll(from_first(processes(), std::to_string(pass.micro_batch_tokens)));
  require_equal_models(parameters, settings,
                       {{"content", pass.reader->info().content_sha256}, {"examples", pass.reader->size()}});
  return agreed;
}

}  // namespace etc::cli
