#include "tasks/text/raw_records.h"

#include "data/readers/json_record.h"
#include "data/readers/open_records.h"
#include "etc_core/base/error.h"

namespace etc::text {

void for_each_record(const std::filesystem::path& path, data::RecordLayout layout,
                     const std::function<void(const JsonField& record)>& visit) {
  data::ByteStream stream(path);
  const auto reader = data::open_records(stream, layout);
  data::RecordSlice slice;
  // Faults already contain the position in the file.
  const auto readable = [&](const auto& read) {
    try {
      return read();
    } catch (const data::InputFault& fault) {
      fail(path.string(), "{}", fault.what());
    }
  };
  while (readable([&] { return reader->next(slice); })) {
    const data::JsonRecord record = readable([&] { return data::parse_record(slice); });
    const bool lines = layout == data::RecordLayout::lines;
    const std::int64_t number = lines ? record.begin.line : record.index;
    visit(JsonField(record.value, fmt::format("{}: {} {}", path.string(), lines ? "line" : "record", number)));
  }
  if (!stream.fault().empty()) fail(path.string(), "{}", stream.fault());
}

void require_gold(bool found, const std::vector<std::filesystem::path>& files, const std::string& what) {
  if (found) return;
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.string());
  fail(fmt::format("{}", fmt::join(names, ", ")), "expected at least one {} to compare with, got none", what);
}

void IdPlaces::add(const std::string& id, const JsonField& record) {
  const auto [first, fresh] = first_.try_emplace(id, record.where());
  if (!fresh) fail(record.where(), "id {} occurs twice, first at {}", id, first->second);
}

}  // namespace etc::text
