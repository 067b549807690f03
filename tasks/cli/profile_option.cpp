#include "tasks/cli/profile_option.h"

#include <fmt/format.h>

#include <cstdio>

#include "etc_core/base/parallel.h"
#include "etc_core/base/profiler.h"
#include "etc_core/base/silence.h"
#include "etc_core/ops/machine_limits.h"

namespace etc::cli {

namespace {

// The number type whose peak rate an operator is compared with: the operator's name ends in it; fp32 has no suffix.
ComputeType compute_of(const std::string& name) {
  for (const ComputeType type : {ComputeType::bf16, ComputeType::int8}) {
    if (name.ends_with(compute_type_name(type))) return type;
  }
  return ComputeType::fp32;
}

std::string rate_text(const profiler::Row& row, const ops::MachineLimits& limits) {
  const bool computes = row.work.operations > 0;
  const double done = computes ? row.work.operations : row.work.bytes;
  if (done == 0 || row.seconds == 0) return "";
  const double rate = done / row.seconds;
  const double limit =
      computes ? limits.operations_per_second[static_cast<int>(compute_of(row.name))] : limits.bytes_per_second;
  return fmt::format("{:>9.1f} {:<7} {:>5.0f} %", rate / 1e9, computes ? "GFLOP/s" : "GB/s", 100 * rate / limit);
}

}  // namespace

void add_profile_option(const Command& command, ProfileOption& profile) {
  command.flag("--profile", profile.table,
               "print per operator calls, time, rate and its share of the machine's measured limit");
  command.option("--trace", profile.trace, "write every operator call to this file, for chrome://tracing");
}

std::string profile_table() {
  const double elapsed = profiler::elapsed();
  const std::vector<profiler::Row> rows = profiler::rows();
  const ops::MachineLimits limits = ops::measure_machine_limits();
  std::string text =
      fmt::format("{:<26} {:>8} {:>9} {:>6}  {:>17} {:>7}\n", "operator", "calls", "seconds", "share", "rate", "limit");
  double inside = 0;
  for (const profiler::Row& row : rows) {
    inside += row.seconds;
    text += fmt::format("{:<26} {:>8} {:>9.3f} {:>4.1f} %  {}\n", row.name, row.calls, row.seconds,
                        100 * row.seconds / elapsed, rate_text(row, limits));
  }
  text += fmt::format("{:<26} {:>8} {:>9.3f} {:>4.1f} %\n", "outside of operators", "", elapsed - inside,
                      100 * (elapsed - inside) / elapsed);
  text += fmt::format("limits, {} threads: {:.0f} GFLOP/s in fp32", thread_count(),
                      limits.operations_per_second[static_cast<int>(ComputeType::fp32)] / 1e9);
  for (const ComputeType type : {ComputeType::bf16, ComputeType::int8}) {
    const double rate = limits.operations_per_second[static_cast<int>(type)];
    if (rate > 0) text += fmt::format(", {:.0f} in {}", rate / 1e9, compute_type_name(type));
  }
  return text + fmt::format(", {:.1f} GB/s\n", limits.bytes_per_second / 1e9);
}

Profile::Profile(const ProfileOption& option) : option_(option) {
  if (option_.wanted()) profiler::start();
}

void Profile::finish() {
  if (!profiler::running()) return;
  profiler::stop();
  if (is_silent()) return;
  if (!option_.trace.empty()) profiler::write_trace(option_.trace);
  if (option_.table) std::fputs(profile_table().c_str(), stderr);
}

}  // namespace etc::cli
