// Common features of the prepared files of WikiHop and HotpotQA (task-wikihop 8.3, task-hotpotqa 8.3), in the order in
// which they are stored.
#pragma once

#include <vector>

#include "data/dataset.h"

namespace etc::feed {

using FeatureSpecs = std::vector<data::FeatureSpec>;

// A task's features in order: the identification of the record and the common features of long tokens; the task's own
// features of long tokens; the common features of global tokens; the task's other features.
FeatureSpecs multihop_features(const FeatureSpecs& of_long, const FeatureSpecs& others);

}  // namespace etc::feed
