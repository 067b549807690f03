// Runs the program as several processes on this machine.
#pragma once

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/train/small_run.h"

namespace etc::test {

using Words = std::vector<std::string>;

// Whether there is an mpirun that can start this build; if not, reports that the test is skipped.
bool have_mpirun();

// mpirun's command line for `size` processes of this command.
Words several(int size, const Words& command);

// Runs the command to its end as `size` processes (1: without mpirun); its output is in `folder`/program.out and .err.
Result run_several(int size, const Words& command, const std::filesystem::path& folder);

// The processes of the program that a running mpirun has started, by rank; waits until there are `size` of them.
std::vector<pid_t> processes_of(pid_t mpirun, int size);

// Whether a process has ended: it no longer exists, or it is a zombie, which computes nothing more.
bool has_ended(pid_t pid);

// Waits until the condition holds, but at most `seconds`; returns whether it holds.
template <typename Condition>
bool wait_for(double seconds, const Condition& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::usleep(10'000);
  }
  return true;
}

}  // namespace etc::test
