#include "tasks/prepare/first_pass.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "data/readers/member_text.h"
#include "tasks/prepare/file_pass.h"

namespace etc::prepare {

namespace {

namespace fs = std::filesystem;

using IdHash = std::uint64_t;

// Two ids with one hash count as one that is repeated: their records are ranked for nothing.
IdHash hash_of(std::string_view id) {
  return std::hash<std::string_view>()(id);
}

// Empty where the record has none, and so no part in the choice.
std::string id_of(data::RecordSlice& slice, const char* field) {
  if (auto id = data::member_text(slice, field)) return std::move(*id);
  data::RecordSlice copy = slice;  // parsing may change the text
  try {
    const data::JsonRecord record = data::parse_record(copy);
    const auto id = record.value.find(field);
    if (id != record.value.end() && id->is_string()) return id->get<std::string>();
  } catch (const data::InputFault&) {
  }
  return {};
}

// The hashes that occur more than once, in ascending order.
std::vector<IdHash> repeated(std::vector<IdHash> hashes) {
  std::sort(hashes.begin(), hashes.end());
  std::vector<IdHash> found;
  for (std::size_t i = 1; i < hashes.size(); ++i) {
    if (hashes[i] == hashes[i - 1] && (found.empty() || found.back() != hashes[i])) found.push_back(hashes[i]);
  }
  return found;
}

std::optional<Candidate> candidate_of(const Preparation& preparation, data::RecordSlice& slice) {
  try {
    const data::JsonRecord record = data::parse_record(slice, preparation.unread_members());
    FaultList ignored;
    if (!unreadable(preparation, record, ignored)) return preparation.candidate(record);
  } catch (const data::InputFault&) {
  }
  return std::nullopt;
}

}  // namespace

Choice choose_records(const Preparation& preparation, const std::vector<fs::path>& inputs,
                      const std::function<void(int walk, std::int64_t bytes)>& progress) {
  const char* field = preparation.unique_field();
  // over(file, result): called for the result of every record, in source order
  const auto walk = [&](int number, const auto& work, const auto& over) {
    std::int64_t before = 0;
    for (std::size_t file = 0; file < inputs.size(); ++file) {
      using Result = decltype(work(std::declval<data::RecordSlice&>()));
      RecordWork<Result> tasks;
      tasks.work = work;
      tasks.deliver = [&](std::int64_t index, const data::TextPosition&, Result&& result) {
        over(Choice::Place{file, index}, result);
      };
      tasks.progress = [&](std::int64_t bytes) { progress(number, before + bytes); };
      walk_records(inputs[file], preparation.layout(), tasks);
      before += static_cast<std::int64_t>(fs::file_size(inputs[file]));
    }
  };

  std::vector<IdHash> hashes;  // [records with an id]
  const auto hash = [&](data::RecordSlice& slice) -> std::optional<IdHash> {
    const std::string id = id_of(slice, field);
    if (id.empty()) return std::nullopt;
    return hash_of(id);
  };
  walk(0, hash, [&](Choice::Place, const std::optional<IdHash>& found) {
    if (found) hashes.push_back(*found);
  });
  const std::vector<IdHash> wanted = repeated(std::move(hashes));
  Choice choice;
  if (wanted.empty()) return choice;
  const auto rank = [&](data::RecordSlice& slice) -> std::optional<Candidate> {
    const auto found = hash(slice);
    if (!found || !std::binary_search(wanted.begin(), wanted.end(), *found)) return std::nullopt;
    return candidate_of(preparation, slice);
  };
  walk(1, rank, [&](Choice::Place place, const std::optional<Candidate>& candidate) {
    if (candidate) choice.add(candidate->id, place, candidate->rank);
  });
  return choice;
}

}  // namespace etc::prepare
