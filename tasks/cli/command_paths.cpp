#include "tasks/cli/command_paths.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "etc_core/base/error.h"
#include "etc_core/base/output_target.h"
#include "etc_core/base/silence.h"
#include "tasks/output.h"
#include "tasks/train/run_directory.h"

namespace etc::cli {

namespace fs = std::filesystem;

namespace {

using Place = CommandPaths::Place;

constexpr std::string_view kPunkt = "punkt:";

Place place_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, "", status.st_mode & S_IFMT, status.st_rdev};
}

// nullopt if no folder on the path can be examined: the code that opens the file reports why.
std::optional<Place> place_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return place_of(status);
  fs::path here = fs::absolute(follow_links(path));
  fs::path rest;
  while (::stat(here.c_str(), &status) != 0) {
    if (here == here.parent_path()) return std::nullopt;
    rest = rest.empty() ? here.filename() : here.filename() / rest;
    here = here.parent_path();
  }
  Place place = place_of(status);
  place.rest = rest.lexically_normal();
  place.type = 0;
  return place;
}

bool same(const Place& a, const Place& b) {
  return a.device == b.device && a.inode == b.inode && a.rest == b.rest;
}

// /dev/null and /dev/full: writing there twice loses nothing.
bool keeps_nothing(const Place& place) {
  return place.type == S_IFCHR && (place.number == makedev(1, 3) || place.number == makedev(1, 7));
}

// Reading and writing the same one is harmless: a terminal, a connection.
bool is_two_way(const Place& place) {
  return place.type == S_IFCHR || place.type == S_IFSOCK;
}

// Whether a path leads to the folder or to something inside it.
bool lies_in(const fs::path& path, const Place& folder) {
  std::error_code code;
  fs::path here = fs::weakly_canonical(fs::absolute(path), code);
  for (; !code && !here.empty(); here = here.parent_path()) {
    struct stat status {};
    if (::stat(here.c_str(), &status) == 0 && same(place_of(status), folder)) return true;
    if (here == here.parent_path()) break;
  }
  return false;
}

}  // namespace

void CommandPaths::reads(const std::string& option, const fs::path& path) {
  if (path.empty()) return;
  if (const auto place = place_of(path)) inputs_.push_back({option, path, *place});
}

void CommandPaths::reads(const std::string& option, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) reads(option, fs::path(path));
}

void CommandPaths::reads_or_standard_input(const std::string& option, const fs::path& path) {
  if (path != "-") return reads(option, path);
  struct stat status {};
  if (::fstat(STDIN_FILENO, &status) == 0)
    inputs_.push_back({.option = option, .path = "standard input", .place = place_of(status), .standard = true});
}

void CommandPaths::reads_folder(const std::string& option, const fs::path& folder) {
  if (folder.empty()) return;
  reads(option, folder);
  std::error_code ignored;  // if it is not a folder, the code that reads it reports that
  for (const auto& entry : fs::directory_iterator(folder, ignored)) reads(option, entry.path());
}

void CommandPaths::reads_model(const std::string& option, const fs::path& folder) {
  reads_folder(option, folder);
  std::error_code none;  // if it does not exist, the code that reads it reports that
  const fs::path run = fs::canonical(folder, none).parent_path();
  if (run.empty() || !is_run_folder(run)) return;
  for (const fs::path& file : files_of_run(run)) reads(option, file);
}

void CommandPaths::reads_splitter(const std::string& option, const std::string& setting) {
  if (setting.starts_with(kPunkt)) reads_folder(option, setting.substr(kPunkt.size()));
}

void CommandPaths::learns_splitter(const std::string& option, const std::string& setting) {
  if (setting.starts_with(kPunkt)) replaces_folder(option, setting.substr(kPunkt.size()));
}

void CommandPaths::writes(const std::string& option, const fs::path& path) {
  if (path.empty()) return;
  if (const auto place = place_of(path)) outputs_.push_back({option, path, *place});
}

void CommandPaths::writes_standard_output(const std::string& option) {
  struct stat status {};
  if (::fstat(STDOUT_FILENO, &status) == 0)
    outputs_.push_back({.option = option, .path = "standard output", .place = place_of(status), .standard = true});
}

void CommandPaths::writes_or_standard_output(const std::string& option, const fs::path& path) {
  return path == "-" ? writes_standard_output(option) : writes(option, path);
}

void CommandPaths::writes_into(const std::string& option, const fs::path& folder) const {
  const auto place = place_of(folder);
  if (!place || place->type == 0 || place->type == S_IFDIR) return;
  fail_usage(command_, "{} {}: expected a folder, got a {}", option, folder.string(),
             place->type == S_IFREG ? "file" : "device, FIFO or socket");
}

void CommandPaths::replaces_folder(const std::string& option, const fs::path& folder) {
  writes_into(option, folder);
  if (const auto place = place_of(folder))
    outputs_.push_back({.option = option, .path = folder, .place = *place, .folder = true});
}

void CommandPaths::check() const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    check_output(outputs_[i]);
    for (const Path& input : inputs_) check_pair(outputs_[i], input, Role::input);
    for (std::size_t j = 0; j < i; ++j) check_pair(outputs_[i], outputs_[j], Role::output);
  }
}

void CommandPaths::check_output(const Path& output) const {
  if (output.standard) return;
  if (output.folder) return require_replaceable_folder(output.path);
  if (output.place.type == S_IFDIR) {
    fail_usage(command_, "{} {}: expected a file, got a folder", output.option, output.path.string());
  }
  require_writable(output.path);
}

void CommandPaths::check_pair(const Path& output, const Path& other, Role role_of_other) const {
  const bool other_is_read = role_of_other == Role::input;
  const bool both_standard = !other_is_read && output.standard && other.standard;
  if (both_standard) {
    fail_usage(command_, "{} and {} both go to standard output: expected a file for one of them", other.option,
               output.option);
  }
  if (output.folder && other_is_read && output.place.type == S_IFDIR && !other.standard &&
      lies_in(other.path, output.place)) {
    fail_usage(command_, "{} {} is replaced as a whole, and {} {} lies in it: expected another folder", output.option,
               output.path.string(), other.option, other.path.string());
  }
  if (!same(output.place, other.place)) return;
  if (other_is_read ? is_two_way(output.place) : keeps_nothing(output.place)) return;
  fail_usage(command_, "{} {} is the same file as {} {}: expected another file than the {}", output.option,
             output.path.string(), other.option, other.path.string(), other_is_read ? "input" : "other output");
}

void print_summary(const std::vector<fs::path>& written, const std::string& text) {
  struct stat status {};
  const bool known = ::fstat(STDOUT_FILENO, &status) == 0 && !keeps_nothing(place_of(status));
  for (const fs::path& path : written) {
    const auto place = place_of(path);
    if (!known || !place || !same(*place, place_of(status))) continue;
    if (!is_silent()) std::fputs(text.c_str(), stderr);
    return;
  }
  write_standard_output(text);
}

}  // namespace etc::cli
