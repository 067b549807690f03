#include "etc_core/nn/projected_positions.h"

namespace etc {

const RelativeParameters& ProjectedPositions::of(std::int64_t layer, std::uint64_t versions,
                                                 const std::function<RelativeParameters()>& make) {
  const auto found = layers_.find(layer);
  if (found != layers_.end() && found->second.versions == versions) return found->second.tables;
  layers_.erase(layer);  // before the new tables are made, so that old and new ones never exist together
  return layers_.insert_or_assign(layer, Entry{versions, make()}).first->second.tables;
}

}  // namespace etc
