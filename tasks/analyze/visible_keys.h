// How many keys of one set each query sees.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/visible_tiles.h"

namespace etc::analyze {

// [queries]; of a type whose tiles all heads share.
std::vector<std::int32_t> visible_keys(const sparse::TypeTiles& tiles);

}  // namespace etc::analyze
