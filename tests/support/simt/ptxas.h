// Compile-time check of kernels: what ptxas reports about them, parsed from `nvcc -Xptxas -v`.
#pragma once

#include <string>
#include <vector>

namespace etc::test {

// One kernel on one architecture.
struct KernelReport {
  std::string name;  // mangled
  std::string architecture;
  int registers = 0;  // per thread
  int stack_bytes = 0, spill_stores = 0, spill_loads = 0, shared_bytes = 0;
};

// The reports in ptxas's output. Throws Error if a kernel's report is incomplete.
std::vector<KernelReport> parse_ptxas(const std::string& output);

// nvcc's path: ETC_NVCC, else `nvcc` on the PATH; empty without one.
std::string nvcc_path();

// Compiles a source of the checkout for the architectures (such as "80") and discards the code. Throws Error with
// nvcc's output if it does not compile.
std::vector<KernelReport> compile_with_nvcc(const std::string& source, const std::vector<std::string>& architectures);

}  // namespace etc::test
