// Which of the records with one id is kept: the best where a task has a first pass (OpenKP: one page per url), else the
// first.
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

  // Records in source order. Of one id the largest rank wins, of equal ranks the first record.
  void add(const std::string& id, Place place, std::int64_t rank) {
    const auto [best, fresh] = best_.try_emplace(id, Best{place, rank});
    if (!fresh && rank > best->second.rank) best->second = {place, rank};
  }

  // The kept record of an id that was added; null for another id.
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
