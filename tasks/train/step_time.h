// A formula for the step time of several processes (tasks/RUNS.md, "Several processes"), and its inputs.
#pragma once

#include <cstdint>
#include <vector>

namespace etc {

// The work of one process in a step, in seconds of this machine.
struct StepWork {
  std::int64_t micro_batches = 1;          // M, per batch
  double forward = 0;                      // t_f, per micro-batch
  double backward = 0;                     // t_b
  double update = 0;                       // t_u
  std::vector<std::int64_t> bucket_bytes;  // s_i, of the gradient; the first one is final last
  bool shard_moments = false;
};

// The link between two processes, in each direction.
struct LinkRates {
  double bytes_per_second = 1.25e9;  // B
  double latency = 50e-6;            // λ, seconds per message
};

struct StepTime {
  std::int64_t micro_batches = 0;  // n, of the process that has the most
  double computing = 0;            // forward, backward, update
  double sending = 0;              // C: gradients out, their sums (or the new weights) back
  double waiting = 0;              // the part of it that the backward pass does not hide
  double bytes = 0;                // received by the process

  double seconds() const { return computing + waiting; }
};

// T(R) = n·(t_f + t_b) + t_u + W, n = ceil(M/R); with sharded moments t_u/R. A bucket of s bytes takes
//   c = (k - k_own)·s/(R·B) + (R-1)·λ     to its owners: k roots of all processes, k_own of the one with most work
//   d = (R-1)·(s/(R·B) + λ)               the sums to all processes
// C = sum of (c + d). All but the first bucket are sent while the last micro-batch's backward pass runs, so
// W = max(c_0 + d_0, C - t_b). With sharded moments the weights are sent after the update instead of the sums:
// W = max(c_0, C_c - t_b) + C_d. With one process W = 0.
StepTime step_time(const StepWork& work, const LinkRates& link, int processes);

}  // namespace etc
