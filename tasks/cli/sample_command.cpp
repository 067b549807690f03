// etc sample: generates records in a data set's original format, with their vocabulary.
#include <memory>
#include <set>

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/config_options.h"
#include "tasks/cli/processes.h"
#include "tasks/registry.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples = R"(Examples:
  etc sample --task wikihop --records 2000 --seed 1 --output sample
  etc sample --task wikihop --records 2000 --seed 1 --hops 2 --candidates 6 --long-tokens 256 --output sample
  etc sample --task nq --records 2000 --mixed 5 --output sample
  etc sample --task openkp --records 8000 --seed 1 --output sample
  etc sample --task translation --records 8000 --seed 1 --output sample)";

// The rows of tasks with a generator.
std::vector<const TaskEntry*> sample_entries() {
  std::vector<const TaskEntry*> entries;
  for (const TaskEntry& entry : task_entries()) {
    if (entry.sample.write != nullptr) entries.push_back(&entry);
  }
  return entries;
}

std::vector<std::string> sample_tasks() {
  std::vector<std::string> names;
  for (const TaskEntry* entry : sample_entries()) names.push_back(entry->name);
  return names;
}

struct SampleCommand {
  std::string task;
  std::string output;
  bool overwrite = false;
  Json given = Json::object();
};

void check_paths(const SampleCommand& options, const SampleKind& kind) {
  const std::filesystem::path folder = options.output;
  CommandPaths paths("etc sample");
  paths.writes_into("--output", folder);
  for (const std::string& name : kind.files) {
    paths.writes("--output", folder / name);
    if (!options.overwrite && std::filesystem::exists(folder / name)) {
      fail_usage("etc sample", "{}: exists already: expected a new folder (--overwrite replaces {})",
                 (folder / name).string(), fmt::join(kind.files, ", "));
    }
  }
  paths.check();
}

// Moves a complete file to its target. If the target is not a regular file (a link, a FIFO), the bytes are written to
// it.
void put_in_place(const fs::path& staged, const fs::path& target) {
  std::error_code none;
  const fs::file_status there = fs::symlink_status(target, none);
  if (fs::exists(there) && !fs::is_regular_file(there)) return write_file_atomically(target, read_file(staged));
  if (fs::exists(there)) fs::permissions(staged, there.permissions());
  sync_path(staged);
  fs::rename(staged, target);
}

void stop_if_asked() {
  if (StopSignal::requested()) throw Interrupted("etc sample: stopped before the end; no file was written");
}

// Writes all files or none: they are first made in a staging directory beside their targets.
void write_all(const SampleKind& kind, const SampleCommand& options) {
  const StopSignal stop_signal;
  const fs::path folder = options.output;
  const bool fresh = !fs::exists(folder);
  make_folders(follow_links(folder), folder);
  try {
    const AtomicFolder staged(folder / ".sample", OldFiles::drop);
    kind.write(options.given, staged.path(), stop_if_asked);
    stop_if_asked();
    for (const std::string& name : kind.files) put_in_place(staged.path() / name, folder / name);
    sync_path(folder);
  } catch (...) {
    std::error_code not_empty;
    if (fresh) fs::remove(folder, not_empty);
    throw;
  }
}

void run(const SampleCommand& options) {
  const SampleKind& kind = find_task(options.task)->sample;  // the option takes tasks with a generator only
  for (const auto& [key, value] : options.given.items()) {
    if (kind.keys.find(key) != nullptr) continue;
    fail_usage("etc sample", "{} is no option of task {}", Field{.name = key}.option_name(), options.task);
  }
  check_paths(options, kind);
  write_all(kind, options);
  log::info("{} written to {}", fmt::join(kind.files, ", "), options.output);
}

// The descriptions of the key by the generators that have it.
std::vector<OptionOfTask> tasks_of(const std::string& key) {
  std::vector<OptionOfTask> tasks;
  for (const TaskEntry* entry : sample_entries()) {
    if (const Field* own = entry->sample.keys.find(key)) tasks.push_back(key_of_task(entry->name, *own));
  }
  return tasks;
}

}  // namespace

void add_sample_command(Program& program) {
  program.add("sample", "generate sample records; nothing is downloaded", [](const Command& command) {
    auto options = std::make_shared<SampleCommand>();
    command.option("--task", options->task, fmt::format("{}", fmt::join(sample_tasks(), ", ")))
        .one_of(sample_tasks())
        .required();
    command.option("--output", options->output, "folder for the train and dev files and their vocabulary").required();
    command.flag("--overwrite", options->overwrite, "replace the files of these names that are there already");
    std::set<std::string> known;
    for (const TaskEntry* entry : sample_entries()) {
      for (const Field& key : entry->sample.keys) {
        if (!known.insert(key.name).second) continue;
        command
            .take_integer(
                key.option_name(), [options, name = key.name](std::int64_t value) { options->given[name] = value; },
                help_of_tasks(tasks_of(key.name)))
            .of_tasks(tasks_of(key.name));
      }
    }
    command.task_first(sample_tasks());
    command.footer(kExamples);
    command.action([options] {
      require_one_process("etc sample", "it");
      run(*options);
    });
  });
}

}  // namespace etc::cli
