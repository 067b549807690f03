// The files and folders named by one command line: no output may be an input, and none may be written twice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace etc::cli {

// Collects the paths of a command by option; check() then compares every output with every input and every other
// output. Files are compared by device and inode, following links; files that do not exist yet are compared by their
// future folder and name. Empty paths are ignored.
class CommandPaths {
 public:
  explicit CommandPaths(std::string command) : command_(std::move(command)) {}  // "etc predict"

  // A file to be read.
  void reads(const std::string& option, const std::filesystem::path& path);
  void reads(const std::string& option, const std::vector<std::string>& paths);
  void reads_or_standard_input(const std::string& option, const std::filesystem::path& path);  // "-"
  // All files directly in a folder: a model directory.
  void reads_folder(const std::string& option, const std::filesystem::path& folder);
  // A model folder and, if it is the checkpoint of a run, that run's own files.
  void reads_model(const std::string& option, const std::filesystem::path& folder);
  // The folder of a setting "punkt:FOLDER"; other settings have none.
  void reads_splitter(const std::string& option, const std::string& setting);
  void learns_splitter(const std::string& option, const std::string& setting);

  void writes(const std::string& option, const std::filesystem::path& path);
  void writes_standard_output(const std::string& option);
  void writes_or_standard_output(const std::string& option, const std::filesystem::path& path);  // "-"
  // Call before the folder's files are added. Throws UsageError at once if the folder exists and is something else, which
  // makes paths below it invalid.
  void writes_into(const std::string& option, const std::filesystem::path& folder) const;
  // A folder that is replaced as a whole: it may contain no file that is read.
  void replaces_folder(const std::string& option, const std::filesystem::path& folder);

  // Call before any work: throws UsageError naming both options if two paths clash, or if an output file is a folder;
  // Error with the system's reason if a file or folder cannot be created. Two outputs may go to a device that discards
  // data (/dev/null), but not both to standard output.
  void check() const;

  // The file that a path resolves to.
  struct Place {
    std::uint64_t device = 0, inode = 0;  // of the file; if it does not exist, of the nearest existing folder
    std::string rest;                     // from that folder to the file
    std::uint32_t type = 0;               // S_IF...; 0: does not exist
    std::uint64_t number = 0;             // of a device node
  };

 private:
  struct Path {
    std::string option;
    std::filesystem::path path;  // for messages
    Place place;
    bool standard = false;  // input or output
    bool folder = false;    // replaced as a whole
  };

  enum class Role { input, output };

  void check_output(const Path& output) const;
  void check_pair(const Path& output, const Path& other, Role role_of_other) const;

  std::string command_;
  std::vector<Path> inputs_, outputs_;
};

// Prints what a command tells at its end: on standard output, or on standard error if one of the files it has written is
// standard output itself (/dev/stdout).
void print_summary(const std::vector<std::filesystem::path>& written, const std::string& text);

}  // namespace etc::cli
