#include "tasks/prepare/parts.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "data/text/sha256.h"
#include "etc_core/base/crc32c.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/base/version.h"

namespace etc::prepare {

namespace {

constexpr std::size_t kKeyLetters = 32;
constexpr std::string_view kEndings[] = {
    ".h5",        ".rejects.jsonl", ".ids.jsonl", ".json",     ".pieces",
    ".sentences", ".begins",        ".documents", ".instances"};  // as in PartFiles
constexpr std::string_view kTemporary = ".partial.tmp";           // suffix of temporary files (AtomicFile)
constexpr const char *kLock = "lock", *kContents = "files";       // a file name; a key of the state file

// Whether a file name is that of a part, of this run or of an earlier one with other settings.
bool is_part(std::string name) {
  if (name.ends_with(kTemporary)) name.resize(name.size() - kTemporary.size());
  const bool key = name.size() > kKeyLetters && std::all_of(name.begin(), name.begin() + kKeyLetters, [](char c) {
                     return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                   });
  return key && std::find(std::begin(kEndings), std::end(kEndings), name.substr(kKeyLetters)) != std::end(kEndings);
}

// Size and checksum.
Json contents_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(std::size_t{1} << 20);
  std::uint32_t checksum = 0;
  std::int64_t bytes = 0;
  while (file.read(block.data(), std::ssize(block)), file.gcount() > 0) {
    checksum = crc32c(checksum, block.data(), static_cast<std::size_t>(file.gcount()));
    bytes += file.gcount();
  }
  return {{"bytes", bytes}, {"crc32c", checksum}};
}

// Contents of the files that exist when finish() is called; documents and instances do not belong to one part, and are
// rewritten by every run.
Json contents_of(const PartFiles& files) {
  Json contents = Json::object();
  for (const auto* path :
       {&files.examples, &files.report, &files.ids, &files.pieces, &files.sentences, &files.begins}) {
    if (std::filesystem::exists(*path)) contents[path->filename().string().substr(kKeyLetters)] = contents_of(*path);
  }
  return contents;
}

}  // namespace

Parts::Parts(const std::filesystem::path& output, const Json& configuration)
    : folder_(output.string() + ".parts"),
      configuration_(fmt::format("{}\n{}\n", program_version(), json_line(configuration))) {}

Parts::~Parts() {
  let_go();
}

void Parts::hold() {
  lock_.emplace(folder_ / kLock);
  const std::string holder = lock_->holder();
  if (holder.empty()) return;
  lock_.reset();
  fail(folder_.string(),
       "in use by another preparation (process {}): expected an output of its own for each (wait for its end, or name "
       "another output)",
       holder);
}

bool Parts::take() {
  std::error_code ignored;
  try {
    if (!lock_ && std::filesystem::exists(folder_, ignored)) hold();
  } catch (const Error&) {
    return false;  // another run holds the lock
  }
  return lock_.has_value();
}

// Also removes the lock file. Processes waiting for the lock detect that (LockFile).
void Parts::let_go() {
  if (!lock_) return;
  std::error_code ignored;
  std::filesystem::remove(folder_ / kLock, ignored);
  std::filesystem::remove(folder_, ignored);  // fails if it contains something else
  lock_.reset();
}

PartFiles Parts::files_of(const std::vector<data::SourceFile>& depends_on) const {
  Json files = Json::array();
  for (const data::SourceFile& file : depends_on) files.push_back({file.name, file.sha256});
  const std::string stem = folder_ / data::sha256_hex(configuration_ + json_line(files)).substr(0, kKeyLetters);
  const auto with = [&](std::size_t ending) { return stem + std::string(kEndings[ending]); };
  return {with(0), with(1), with(2), with(3), with(4), with(5), with(6), with(7), with(8)};
}

std::optional<Counts> Parts::finished(const PartFiles& files) const {
  if (!std::filesystem::exists(files.state)) return std::nullopt;
  try {
    const Json state = read_json_file(files.state);
    const Counts counts = counts_of(state);
    if (state.contains(kContents) && state[kContents] == contents_of(files)) return counts;
  } catch (const Error&) {  // the state file itself is damaged
  }
  log::warn("prepare: {}: a finished part is not as it was written: its input is prepared again", files.state.string());
  return std::nullopt;
}

void Parts::finish(const PartFiles& files, const Counts& counts) const {
  Json state = json_of(counts);
  state[kContents] = contents_of(files);
  write_file_atomically(files.state, json_text(state));
}

void Parts::fail_to_read(const Error& error) const {
  throw Error(fmt::format("{} (a part of the preparation: delete {} and run the command again)", error.what(),
                          folder_.string()));
}

std::vector<std::filesystem::path> Parts::files() const {
  std::error_code ignored;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    if (is_part(entry.path().filename())) files.push_back(entry.path());
  }
  return files;
}

std::int64_t Parts::bytes() const {
  std::int64_t all = 0;
  for (const auto& file : files()) all += static_cast<std::int64_t>(std::filesystem::file_size(file));
  return all;
}

void Parts::remove() {
  if (!take()) return;
  std::error_code ignored;  // a remaining part costs disk space, not correctness
  for (const auto& file : files()) std::filesystem::remove(file, ignored);
  let_go();
}

}  // namespace etc::prepare
