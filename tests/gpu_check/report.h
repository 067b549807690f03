// What a gpu-check stage found, case by case: one JSON file, whole after every case, so that a machine that is taken
// away leaves what it had shown.
#pragma once

#include <filesystem>
#include <string>

#include "etc_core/base/json.h"
#include "etc_core/nn/backends.h"

namespace etc::gpu_check {

class Report {
 public:
  // stage: smoke, kernels, model or bench; device: in words.
  Report(std::filesystem::path file, const std::string& stage, const std::string& device);

  // One case; fault empty: it holds. Prints a line as well.
  void add(const std::string& name, const std::string& fault, const Json& figures = Json::object());

  int faults() const { return faults_; }
  void finish();  // marks the stage as run to its end

 private:
  void write() const;

  std::filesystem::path file_;
  Json json_;
  int faults_ = 0;
};

// The device; where there is none that can be used, an error that `file` says as well, as the stage's one case.
OpenedDevice open_or_report(const std::filesystem::path& file, const std::string& stage);

// Runs a case: what it throws is its fault.
template <typename Run>
void run_case(Report& report, const std::string& name, const Run& run) {
  Json figures = Json::object();
  std::string fault;
  try {
    fault = run(figures);
  } catch (const std::exception& error) {
    fault = error.what();
  }
  report.add(name, fault, figures);
}

}  // namespace etc::gpu_check
