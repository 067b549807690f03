// What stands behind the name of an output, before anything is written there.
#pragma once

#include <cstdint>
#include <filesystem>

namespace etc {

struct OutputTarget {
  enum class Kind {
    absent,    // nothing yet: a new file appears at `path`
    regular,   // a file, which a new one replaces, with the permission bits of the old one
    in_place,  // a device, a FIFO, or an open file of a process (/dev/stdout): the bytes go into it as they come
  };
  std::filesystem::path path;  // symbolic links followed
  Kind kind = Kind::absent;
  std::uint32_t permissions = 0;       // of a regular file
  std::uint32_t owner = 0, group = 0;  // of a regular file
};

// The name with the symbolic links of its last part followed, chains and links to nothing as well. Links of /proc that
// stand for an open file are not texts to follow: the name of such a link is returned. Throws Error on a loop, or where
// a folder on the way cannot be read.
std::filesystem::path follow_links(const std::filesystem::path& name);

// Throws Error naming `name` when it is a folder, a socket or a loop of links, or lies where nothing can be looked up.
OutputTarget find_output_target(const std::filesystem::path& name);

// A descriptor that writes into a target of kind in_place. A FIFO without a reader is waited for; a signal that has a
// handler ends the waiting with Interrupted. A regular file behind /proc is written behind what it holds.
int open_in_place(const OutputTarget& target, const std::filesystem::path& name);

// Makes the folders of `folder` that are missing. Throws Error naming `name`, what they are wanted for.
void make_folders(const std::filesystem::path& folder, const std::filesystem::path& name);

// Throws the Error that writing to this name would end in, as far as it can be told beforehand: those of
// find_output_target, no permission, a read-only file system. Makes nothing.
void require_writable(const std::filesystem::path& name);

}  // namespace etc
