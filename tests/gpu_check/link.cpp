// gpu_check_link OUTPUT.json, started by mpirun with one process for each GPU. Checks that sums over the GPU link equal
// sums through the hosts, bit for bit. Exit codes: 0 equal, 1 not equal, 2 usage.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "etc_core/comm/launch.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/optim/process_sum.h"
#include "tests/gpu_check/device_arrays.h"
#include "tests/gpu_check/report.h"
#include "tests/gpu_check/stopwatch.h"

namespace etc::gpu_check {

namespace {

constexpr std::int64_t kLeaves = 3;  // per process: two roots

// Sums of random gradients of 64 million weights in buckets.
GradientSet summed(const Division& division, ParameterSet& parameters) {
  ProcessSum sum(division, parameters, ProcessSum::Result::whole);
  std::vector<LeafRange> of_rank;
  for (int rank = 0; rank < division.processes.size(); ++rank)
    of_rank.push_back({kLeaves * rank, kLeaves * (rank + 1)});
  sum.begin(of_rank);
  const LeafRange& own = of_rank[static_cast<std::size_t>(division.processes.rank())];
  for (std::int64_t leaf = own.first; leaf < own.end; ++leaf) {
    for (const auto& parameter : parameters.all()) {
      parameter->grad = random_on(Device::cuda, parameter->shape, static_cast<std::uint64_t>(leaf) + 1);
    }
    sum.take_rest(leaf);
  }
  return sum.finish();
}

std::string compare(Communicator& processes, const std::shared_ptr<DeviceRounds>& rounds) {
  ParameterSet parameters;
  for (int i = 0; i < 16; ++i) {
    parameters.add("weights " + std::to_string(i), {4'000'003}, {Initializer::Kind::normal, 1});
  }
  parameters.initialize(1);
  parameters.to(Device::cuda);
  const Shards shards(parameters, processes.size(), 32 << 20);
  const GradientSet expected = summed({processes, shards, nullptr}, parameters);
  const GradientSet got = summed({processes, shards, rounds}, parameters);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Tensor a = got[i].to(Device::cpu), b = expected[i].to(Device::cpu);
    if (std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(float)) != 0) {
      return "the sum of parameter " + std::to_string(i) + " has other bits than through the hosts";
    }
  }
  return "";
}

int run(const std::string& output, Communicator& processes) {
  add_backend(cuda_backend());
  const OpenedDevice device = open_or_report(output, "link");
  const auto rounds = rounds_between(processes, Device::cuda);
  const std::string own = rounds ? compare(processes, rounds) : "no link: processes share a GPU";
  int faults = 0;
  for (const std::string& fault : processes.gather(own)) faults += fault.empty() ? 0 : 1;
  if (!processes.first()) return faults == 0 ? 0 : 1;
  Report report(output, "link", device.description);
  report.add("sums over the link are those through the hosts",
             own.empty() && faults > 0 ? "another rank's differ" : own, {{"processes", processes.size()}});
  report.finish();
  return faults == 0 ? 0 : 1;
}

}  // namespace

}  // namespace etc::gpu_check

int main(int argc, char** argv) {
  using namespace etc;
  if (argc != 2 || !launched_with_others()) {
    std::fprintf(stderr, "usage: mpirun -n GPUS gpu_check_link OUTPUT.json\n");
    return 2;
  }
  const std::unique_ptr<Communicator> processes = join_processes();
  try {
    return gpu_check::run(argv[1], *processes);
  } catch (const std::exception& error) {
    processes->end_all(error.what(), 1);
  }
}
