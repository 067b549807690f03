// Which of the records with the same id is kept: the best one if the task has a first pass (OpenKP: one page per url),
// otherwise the first.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace etc::prepare {

class Choice {
 public:
  struct Place {
    std::size_t file = 0;
    std::int64_t record = 0;
    bool operator==(const Place&) const = default;
  };

  // Called for records in source order. For each id the largest rank wins, among equal ranks the first record.
  void add(const std::string& id, Place place, std::int64_t rank) {
    const auto [best, fresh] = best_.try_emplace(id, Best{place, rank});
    if (!fresh && rank > best->second.rank) best->second = {place, rank};
  }

  // The kept record for an id that was added; null for any other id.
  const Place* kept(const std::string& id) const {
    const auto best = best_.find(id);
    return best == best_.end() ? nullptr : &best->second.place;
  }

 private:
  struct Best {
    Place place;
    std::int64_t rank;
  };
  std::unordered_map<std::string, Best> best_;
};

}  // namespace etc::prepare
