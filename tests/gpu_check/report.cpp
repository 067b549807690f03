#include "tests/gpu_check/report.h"

#include <cstdio>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::gpu_check {

Report::Report(std::filesystem::path file, const std::string& stage, const std::string& device)
    : file_(std::move(file)) {
  json_ = {{"stage", stage}, {"device", device}, {"finished", false}, {"faults", 0}, {"cases", Json::array()}};
  write();
}

void Report::add(const std::string& name, const std::string& fault, const Json& figures) {
  Json entry = {{"name", name}, {"holds", fault.empty()}};
  if (!fault.empty()) entry["fault"] = fault;
  if (!figures.empty()) entry["figures"] = figures;
  json_["cases"].push_back(entry);
  faults_ += fault.empty() ? 0 : 1;
  json_["faults"] = faults_;
  write();
  std::printf("%s %s%s%s %s\n", fault.empty() ? "ok   " : "FAULT", name.c_str(), fault.empty() ? "" : ": ",
              fault.c_str(), figures.empty() ? "" : json_line(figures).c_str());
  std::fflush(stdout);
}

void Report::finish() {
  json_["finished"] = true;
  write();
}

void Report::write() const {
  write_file_atomically(file_, json_text(json_));
}

OpenedDevice open_or_report(const std::filesystem::path& file, const std::string& stage) {
  try {
    return open_device("cuda");
  } catch (const Error& error) {
    Report(file, stage, "none").add("a device is there", error.what(), {});
    throw;
  }
}

}  // namespace etc::gpu_check
