// The files and folders that one command line names: what is written must not be what is read, nor written twice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace etc::cli {

// Collects the paths of a command by option; check() then compares every output with every input and every other
// output. Files are told apart by device and inode, also through links, and those that do not exist yet by the folder
// they would appear in. Empty paths are left out.
class CommandPaths {
 public:
  explicit CommandPaths(std::string command) : command_(std::move(command)) {}  // "etc predict"

  // A file that is read.
  void reads(const std::string& option, const std::filesystem::path& path);
  void reads(const std::string& option, const std::vector<std::string>& paths);
  void reads_or_standard_input(const std::string& option, const std::filesystem::path& path);  // "-"
  // Everything that lies directly in a folder: a model directory.
  void reads_folder(const std::string& option, const std::filesystem::path& folder);
  // A model folder, and where it is the checkpoint of a run, that run's own files.
  void reads_model(const std::string& option, const std::filesystem::path& folder);
  // The folder of a setting "punkt:FOLDER"; other settings name none.
  void reads_splitter(const std::string& option, const std::string& setting);
  void learns_splitter(const std::string& option, const std::string& setting);

  void writes(const std::string& option, const std::filesystem::path& path);
  void writes_standard_output(const std::string& option);
  void writes_or_standard_output(const std::string& option, const std::filesystem::path& path);  // "-"
  // A folder that is replaced as a whole: nothing that is read may lie in it.
  void replaces_folder(const std::string& option, const std::filesystem::path& folder);

  // Before any work: throws UsageError naming both options where two paths clash, or where a file to be written is a
  // folder; Error with the system's reason where a file or folder cannot be made. Two outputs may go to a device that
  // keeps nothing (/dev/null), but not both to standard output.
  void check() const;

  // What a path leads to.
  struct Place {
    std::uint64_t device = 0, inode = 0;  // of the file; of the nearest folder there is, if the file is not
    std::string rest;                     // from that folder to the file
    std::uint32_t type = 0;               // S_IF...; 0: does not exist
    std::uint64_t number = 0;             // of a device
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

}  // namespace etc::cli
