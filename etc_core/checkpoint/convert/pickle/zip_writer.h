// Writes zip files with uncompressed members, which every tool can open; for submissions, which are small.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace etc::convert {

// name → bytes, in the order of the names.
using ZipContents = std::map<std::string, std::string, std::less<>>;

// Writes the members uncompressed, all with the same date, so that equal contents give equal bytes. Throws Error when
// they do not fit into a zip file without ZIP64 (4 GiB, 65,535 members or bytes of a name).
void write_stored_zip(const std::filesystem::path& path, const ZipContents& contents);

// All members of a zip file (zip_archive.h has the rules). Throws Error naming file and member.
ZipContents read_zip(const std::filesystem::path& path);

}  // namespace etc::convert
