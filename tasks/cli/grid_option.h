// --grid and --seeds of `etc train`: several runs instead of one.
#pragma once

#include <memory>

#include "tasks/cli/command.h"
#include "tasks/train/grid.h"

namespace etc::cli {

struct GridOption {
  Grid grid;
  bool given = false;  // one of the two options was
};

// Declares both options. Their UsageErrors name the invalid key or value.
std::shared_ptr<GridOption> add_grid_option(const Command& command);

}  // namespace etc::cli
