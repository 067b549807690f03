#include "tasks/train/run_record.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr const char *kCardFile = "README.md", *kWeightsFile = "model.safetensors", *kConfigFile = "config.json";

std::string kept_name(std::int64_t step) {
  return fmt::format("step_{:08}", step);
}

// Steps whose weights are kept in a folder, ascending. Folders with other names, or without weights, are foreign.
std::vector<std::int64_t> kept_steps(const fs::path& kept) {
  constexpr std::string_view kBefore = "step_";
  std::vector<std::int64_t> steps;
  for (const auto& entry : fs::directory_iterator(kept)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBefore)) continue;
    const std::int64_t step = std::strtoll(name.c_str() + kBefore.size(), nullptr, 10);
    if (name == kept_name(step) && fs::exists(entry.path() / kWeightsFile)) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

// Removes what keep() wrote, and the folder unless it contains foreign files.
void remove_kept(const fs::path& folder, const MoreFiles& files) {
  for (const auto& [name, content] : files) fs::remove(folder / name);
  for (const char* name : {kWeightsFile, kConfigFile}) fs::remove(folder / name);
  std::error_code not_empty;
  fs::remove(folder, not_empty);
}

}  // namespace

RunRecord::RunRecord(const fs::path& folder, const Json& config, const MoreFiles& files)
    : run_(folder), config_(config), files_(files), best_files_(files), best_(run_ / "best", config, best_files_) {}

void RunRecord::take_up(const RunProgress& progress, const ParameterSet& parameters) {
  saved_step_ = progress.step;
  saved_evaluation_ = progress.evaluated_step;
  saved_ = true;
  if (progress.best_saved) return;
  best_.read_kept(last(), parameters, progress.step, progress.best_step);
  best_.retry(progress.step);
}

void RunRecord::start(const Json& resolved_config, std::int64_t step) {
  write_file_atomically(run_ / "config.json", json_text(resolved_config));
  metrics_ = std::make_unique<MetricsLog>(run_.path(), step);
}

void RunRecord::add(std::int64_t step, const std::string& kind,
                    const std::vector<std::pair<std::string, double>>& values) {
  run_.require_present();
  metrics_->add(step, kind, values);
}

void RunRecord::take_best(const ParameterSet& parameters, std::int64_t step, const std::string& card) {
  run_.require_present();
  best_files_[kCardFile] = card;
  best_.replace(parameters, step);
}

void RunRecord::keep(const ParameterSet& parameters, std::int64_t step, std::int64_t most) {
  run_.require_present();
  const fs::path kept = run_ / "kept";
  try {
    save_model(kept / kept_name(step), config_, parameters, files_);
    std::vector<std::int64_t> steps = kept_steps(kept);
    // Later steps were kept by a run that was killed after them; the resumed run writes them again.
    std::erase_if(steps, [&](std::int64_t other) { return other > step; });
    for (std::int64_t i = 0; i + most < std::ssize(steps); ++i) {
      remove_kept(kept / kept_name(steps[static_cast<std::size_t>(i)]), files_);
    }
  } catch (const std::runtime_error& error) {  // Error, or an exception of std::filesystem
    log::warn("the weights of step {} are not kept: {}", step, error.what());
  }
}

bool RunRecord::wants_save(const RunProgress& progress) {
  run_.require_present();
  best_.retry(progress.step);
  const bool same = saved_ && saved_step_ == progress.step && saved_evaluation_ == progress.evaluated_step;
  return !same || progress.best_saved != best_.saved();
}

void RunRecord::save(const ParameterSet& parameters, const std::map<std::string, Tensor>& tensors,
                     RunProgress& progress, const Json& identity) {
  progress.best_saved = best_.saved();
  try {
    save_run(last(), {config_, parameters, files_, tensors, progress, best_, identity});
    saved_step_ = progress.step;
    saved_evaluation_ = progress.evaluated_step;
    saved_ = true;
  } catch (const std::runtime_error& error) {  // Error, or an exception of std::filesystem
    saved_ = false;
    log::warn("step {} not saved, {}: {}", progress.step, saved_text(), error.what());
  }
}

std::string RunRecord::saved_text() const {
  return saved_step_ < 0 ? "there is no checkpoint yet" : fmt::format("the checkpoint of step {} stays", saved_step_);
}

void RunRecord::require_saved(const RunProgress& progress) const {
  if (!saved_) {
    fail("train", "the last checkpoint could not be saved{} (see the warnings above)",
         best_.saved() ? "" : ", nor could that of the best evaluation");
  }
  if (!best_.saved()) {
    fail("train",
         "checkpoint `best` could not be saved (see the warnings above): the best evaluation is that of step {}, {} "
         "{:.6g}; its weights are kept in {}, and the same command tries again",
         progress.best_step, progress.best.front().first, progress.best.front().second, last().string());
  }
}

void RunRecord::require_stopped_sound(const RunProgress& progress, const std::string& signal) const {
  if (!saved_) fail("train", "{}: stopped at step {}, which could not be saved", signal, progress.step);
}

void RunRecord::save_as_best(const ParameterSet& parameters, const std::string& card) {
  best_files_[kCardFile] = card;
  save_model(best(), config_, parameters, best_files_);
}

void RunRecord::report_end(const RunProgress& progress) const {
  if (std::filesystem::exists(best())) {
    log::info("finished at step {}; checkpoints: {} and {}", progress.step, best().string(), last().string());
  } else {
    log::warn("finished at step {}; checkpoint: {}; the best one, of step {}, is no longer there", progress.step,
              last().string(), progress.best_step);
  }
}

}  // namespace etc
