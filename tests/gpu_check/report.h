// Report of a gpu-check stage: one JSON file that is complete after every case, so that results survive if the machine
// is taken away.
#pragma once

#include <filesystem>
#include <string>

#include "etc_core/base/json.h"
#include "etc_core/nn/backends.h"

namespace etc::gpu_check {

class Report {
 public:
  // stage: smoke, kernels, model or bench; device: its description.
  Report(std::filesystem::path file, const std::string& stage, const std::string& device);

  // Adds one case, which passes if `fault` is empty. Also prints a line.
  void add(const std::string& name, const std::string& fault, const Json& figures = Json::object());

  int faults() const { return faults_; }
  void finish();  // marks the stage as complete

 private:
  void write() const;

  std::filesystem::path file_;
  Json json_;
  int faults_ = 0;
};

// Opens the device. Without a usable device it throws an error and reports it in `file` as the stage's only case.
OpenedDevice open_or_report(const std::filesystem::path& file, const std::string& stage);

// Runs a case; an exception that it throws becomes its fault.
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
