#include "tasks/prepare/first_pass.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "tasks/prepare/record_walk.h"

namespace etc::prepare {

namespace {

namespace fs = std::filesystem;

using IdHash = std::uint64_t;

// If two ids have the same hash, they count as a repeated one: their records are only ranked unnecessarily.
IdHash hash_of(std::string_view id) {
  return std::hash<std::string_view>()(id);
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

}  // namespace

Choice choose_records(const Preparation& preparation, const std::vector<fs::path>& inputs,
                      const std::function<void(int walk, std::int64_t bytes)>& progress) {
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
      walk_records(preparation, inputs[file], tasks);
      before += static_cast<std::int64_t>(fs::file_size(inputs[file]));
    }
  };

  std::vector<IdHash> hashes;  // [records with an id]
  const auto hash = [&](data::RecordSlice& slice) -> std::optional<IdHash> {
    const std::string id = preparation.unique_id(slice);
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
    return preparation.candidate_of(slice);
  };
  walk(1, rank, [&](Choice::Place place, const std::optional<Candidate>& candidate) {
    if (candidate) choice.add(candidate->id, place, candidate->rank);
  });
  return choice;
}

}  // namespace etc::prepare
