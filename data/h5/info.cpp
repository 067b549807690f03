#include "data/h5/info.h"

#include <string>

#include "data/dataset_info.h"
#include "data/h5/attributes.h"
#include "data/h5/library.h"
#include "etc_core/base/error.h"

namespace etc::data::h5 {

namespace {

constexpr NumberType kUint8{1, false, false};
constexpr NumberType kInt32{4, true, false};
constexpr NumberType kInt64{8, true, false};

// Keys sorted, no blanks: nlohmann's objects are ordered maps.
std::string compact_text(const Json& json, const std::string& where) {
  try {
    return json_line(json);
  } catch (const Json::exception& error) {
    fail(where, "cannot be written as JSON: {}", error.what());
  }
}

Json source_list(const std::vector<SourceFile>& files) {
  Json list = Json::array();
  for (const SourceFile& file : files)
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  return list;
}

std::vector<SourceFile> source_files(const Json& list, const std::string& where) {
  try {
    std::vector<SourceFile> files;
    for (const Json& file : list) {
      files.push_back({file.at("name").get<std::string>(), file.at("bytes").get<std::int64_t>(),
                       file.at("sha256").get<std::string>()});
    }
    return files;
  } catch (const Json::exception& error) {
    fail(where, "expected a list of {{\"name\", \"bytes\", \"sha256\"}}: {} ({})", error.what(), kDamaged);
  }
}

Json missing_list(const std::vector<MissingPart>& parts) {
  Json list = Json::array();
  for (const MissingPart& part : parts) list.push_back({{"name", part.name}, {"reason", part.reason}});
  return list;
}

std::vector<MissingPart> missing_parts(const Json& list, const std::string& where) {
  try {
    std::vector<MissingPart> parts;
    for (const Json& part : list)
      parts.push_back({part.at("name").get<std::string>(), part.at("reason").get<std::string>()});
    if (!list.is_array() || parts.empty()) fail(where, "expected a list that is not empty ({})", kDamaged);
    return parts;
  } catch (const Json::exception& error) {
    fail(where, "expected a list of {{\"name\", \"reason\"}}: {} ({})", error.what(), kDamaged);
  }
}

// More than any file holds, yet sums of counts cannot overflow.
constexpr std::int64_t kLargestCount = std::int64_t{1} << 48;

std::int64_t read_count(hid_t file, const char* name, const std::string& where) {
  const std::int64_t count = read_integer(file, name, where);
  if (count < 0 || count > kLargestCount)
    fail(where, "{}: expected a count from 0 to {}, got {} ({})", name, kLargestCount, count, kDamaged);
  return count;
}

}  // namespace

void write_info(hid_t file, const DatasetInfo& info, const std::string& where) {
  write_text(file, "task", info.task, where);
  write_integer(file, "format_version", info.missing.empty() ? kFormatVersion : kIncompleteVersion, kInt32, where);
  write_text(file, "split", info.split, where);
  write_text(file, "vocab_sha256", info.vocab_sha256, where);
  write_text(file, "preprocess_config", compact_text(info.preprocess_config, where + ": preprocess_config"), where);
  write_integer(file, "n_input_records", info.input_records, kInt64, where);
  write_integer(file, "n_examples", info.examples, kInt64, where);
  write_integer(file, "n_rejected", info.rejected, kInt64, where);
  write_integer(file, "n_dropped", info.dropped, kInt64, where);
  write_text(file, "source_files", compact_text(source_list(info.source_files), where + ": source_files"), where);
  write_integer(file, "labelled", info.labelled ? 1 : 0, kUint8, where);
  write_integer(file, "max_long_len", info.max_long_len, kInt32, where);
  write_integer(file, "max_global_len", info.max_global_len, kInt32, where);
  write_text(file, "unicode_version", info.unicode_version, where);
  write_text(file, "content_sha256", info.content_sha256, where);
  if (info.missing.empty()) return;
  write_text(file, "incomplete", compact_text(missing_list(info.missing), where + ": incomplete"), where);
}

DatasetInfo read_info(hid_t file, std::uint64_t file_bytes, const std::string& where) {
  // Read first, because everything else may differ between versions.
  const std::int64_t version = read_integer(file, "format_version", where);
  if (version != kFormatVersion && version != kIncompleteVersion)
    fail(where, "format_version: expected {} or {}, got {} (run `etc prepare` again)", kFormatVersion,
         kIncompleteVersion, version);
  const auto text = [&](const char* name) { return read_text(file, name, file_bytes, where); };
  DatasetInfo info;
  info.task = text("task");
  info.split = text("split");
  info.vocab_sha256 = text("vocab_sha256");
  const std::string config_where = where + ": preprocess_config", source_where = where + ": source_files";
  info.preprocess_config = parse_json(text("preprocess_config"), config_where);
  if (!info.preprocess_config.is_object()) fail(config_where, "expected a JSON object ({})", kDamaged);
  info.source_files = source_files(parse_json(text("source_files"), source_where), source_where);
  info.labelled = read_integer(file, "labelled", where) != 0;
  info.unicode_version = text("unicode_version");
  info.input_records = read_count(file, "n_input_records", where);
  info.examples = read_count(file, "n_examples", where);
  info.rejected = read_count(file, "n_rejected", where);
  info.dropped = read_count(file, "n_dropped", where);
  info.max_long_len = read_count(file, "max_long_len", where);
  info.max_global_len = read_count(file, "max_global_len", where);
  info.content_sha256 = text("content_sha256");
  if (version == kIncompleteVersion) {
    const std::string missing_where = where + ": incomplete";
    info.missing = missing_parts(parse_json(text("incomplete"), missing_where), missing_where);
  }
  return info;
}

}  // namespace etc::data::h5
