#include "tasks/prepare/parts.h"

#include "data/text/sha256.h"
#include "etc_core/base/error.h"
#include "etc_core/base/version.h"

namespace etc::prepare {

Parts::Parts(const std::filesystem::path& output, const Json& configuration)
    : folder_(output.string() + ".parts"),
      configuration_(fmt::format("{}\n{}\n", program_version(), configuration.dump())) {}

PartFiles Parts::files_of(const std::vector<data::SourceFile>& depends_on) const {
  Json files = Json::array();
  for (const data::SourceFile& file : depends_on) files.push_back({file.name, file.sha256});
  const auto stem = (folder_ / data::sha256_hex(configuration_ + files.dump()).substr(0, 32)).string();
  return {stem + ".h5", stem + ".rejects.jsonl", stem + ".ids.jsonl", stem + ".json"};
}

void Parts::make_folder() const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) fail(folder_.string(), "cannot make the folder for finished parts: {}", error.message());
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
  std::error_code ignored;  // a folder left behind costs room, not correctness
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace etc::prepare
