// What kind of file an output name refers to, determined before anything is written.
#pragma once

#include <cstdint>
#include <filesystem>

namespace etc {

struct OutputTarget {
  enum class Kind {
    absent,    // nothing yet: a new file appears at `path`
    regular,   // a file, which a new one replaces, with the permission bits of the old one
    in_place,  // a device, a FIFO, or an open file of a process (/dev/stdout): bytes are written directly into it
  };
  std::filesystem::path path;  // symbolic links followed
  Kind kind = Kind::absent;
  std::uint32_t permissions = 0;       // of a regular file
  std::uint32_t owner = 0, group = 0;  // of a regular file
};

// Follows the symbolic links of the name's last component, including chains and dangling links. The text of a link in
// /proc that stands for an open file is not a path, so the name of that link is returned. Throws Error on a loop, or if
// a folder on the path cannot be read.
std::filesystem::path follow_links(const std::filesystem::path& name);

// The folder of a file or folder; "." for a name alone.
std::filesystem::path folder_of(const std::filesystem::path& path);

// Throws Error naming `name` when it is a folder, a socket or a loop of links, or when the lookup itself fails.
OutputTarget find_output_target(const std::filesystem::path& name);

// A descriptor that writes into a target of kind in_place. For a FIFO it waits until there is a reader; a signal with a
// handler ends the waiting with Interrupted. A regular file reached through /proc is appended to.
int open_in_place(const OutputTarget& target, const std::filesystem::path& name);

// Makes `folder` and its missing parents. Throws Error naming `name`, the output that needs them.
void make_folders(const std::filesystem::path& folder, const std::filesystem::path& name);

// Throws the Error that writing to this name would cause, as far as it can be predicted: those of find_output_target,
// no permission, a read-only file system. Creates nothing.
void require_writable(const std::filesystem::path& name);

// The same for a folder of this name that is made, or replaced as a whole.
void require_replaceable_folder(const std::filesystem::path& name);

}  // namespace etc
