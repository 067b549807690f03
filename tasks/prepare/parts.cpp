#include "tasks/prepare/parts.h"

#include <algorithm>
#include <string_view>

#include "data/text/sha256.h"
#include "etc_core/base/error.h"
#include "etc_core/base/version.h"

namespace etc::prepare {

namespace {

constexpr std::size_t kKeyLetters = 32;
constexpr std::string_view kEndings[] = {
    ".h5",        ".rejects.jsonl", ".ids.jsonl", ".json",     ".pieces",
    ".sentences", ".begins",        ".documents", ".instances"};  // as in PartFiles
constexpr std::string_view kTemporary = ".partial.tmp";           // behind them while a killed run wrote (AtomicFile)

// Whether a file's name is that of a part, of this run or of an earlier one with other settings.
bool is_part(std::string name) {
  if (name.ends_with(kTemporary)) name.resize(name.size() - kTemporary.size());
  const bool key = name.size() > kKeyLetters && std::all_of(name.begin(), name.begin() + kKeyLetters, [](char c) {
                     return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                   });
  return key && std::find(std::begin(kEndings), std::end(kEndings), name.substr(kKeyLetters)) != std::end(kEndings);
}

}  // namespace

Parts::Parts(const std::filesystem::path& output, const Json& configuration)
    : folder_(output.string() + ".parts"),
      configuration_(fmt::format("{}\n{}\n", program_version(), json_line(configuration))) {}

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
    return counts_of(read_json_file(files.state));
  } catch (const Error&) {
    return std::nullopt;  // not ours or damaged: the file is prepared again
  }
}

void Parts::finish(const PartFiles& files, const Counts& counts) const {
  write_file_atomically(files.state, json_text(json_of(counts)));
}

void Parts::remove() const {
  std::error_code ignored;  // a part left behind costs room, not correctness
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    if (is_part(entry.path().filename())) files.push_back(entry.path());
  }
  for (const auto& file : files) std::filesystem::remove(file, ignored);
  std::filesystem::remove(folder_, ignored);  // unless it holds something else
}

}  // namespace etc::prepare
