#include "tests/support/simt/ptxas.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "etc_core/base/error.h"
#include "tests/support/folders.h"

namespace etc::test {

namespace {

struct Output {
  std::string text;
  int status = 0;
};

Output run(const std::string& command) {
  Output output;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) fail("gate", "cannot run {}", command);
  for (char line[4096]; std::fgets(line, sizeof line, pipe) != nullptr;) output.text += line;
  output.status = ::pclose(pipe);
  return output;
}

}  // namespace

std::vector<KernelReport> parse_ptxas(const std::string& output) {
  static const std::regex entry("Compiling entry function '([^']+)' for '([^']+)'");
  static const std::regex frame("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
  static const std::regex used("Used ([0-9]+) registers");
  static const std::regex shared("([0-9]+) bytes smem");
  std::vector<KernelReport> reports;
  bool open = false;  // a kernel's "Used" line has not been read yet
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, entry)) {
      if (open) fail("gate", "{}: expected registers, got another kernel", reports.back().name);
      reports.push_back({match[1], match[2]});
      open = true;
    } else if (open && std::regex_search(line, match, frame)) {
      reports.back().stack_bytes = std::stoi(match[1]);
      reports.back().spill_stores = std::stoi(match[2]);
      reports.back().spill_loads = std::stoi(match[3]);
    } else if (open && std::regex_search(line, match, used)) {
      reports.back().registers = std::stoi(match[1]);
      if (std::regex_search(line, match, shared)) reports.back().shared_bytes = std::stoi(match[1]);
      open = false;
    }
  }
  if (open) fail("gate", "{}: expected registers, got the end", reports.back().name);
  return reports;
}

std::string nvcc_path() {
  if (const char* given = std::getenv("ETC_NVCC")) return given;
  const Output found = run("command -v nvcc");
  return found.status == 0 ? found.text.substr(0, found.text.find('\n')) : "";
}

std::vector<KernelReport> compile_with_nvcc(const std::string& source, const std::vector<std::string>& architectures) {
  std::string targets;
  for (const std::string& a : architectures) targets += fmt::format(" -gencode=arch=compute_{0},code=sm_{0}", a);
  targets += fmt::format(" -gencode=arch=compute_{0},code=compute_{0}", architectures.back());
  const std::string root = source_folder().string();
  const Output output =
      run(fmt::format("'{}' -std=c++17 --expt-relaxed-constexpr --threads 2 -O3 -Xptxas -v{} -I'{}' -Igenerated -c "
                      "'{}/{}' -o /dev/null",
                      nvcc_path(), targets, root, root, source));
  if (output.status != 0) fail("gate", "{} does not compile:\n{}", source, output.text);
  return parse_ptxas(output.text);
}

}  // namespace etc::test
