// Features that the prepared files of WikiHop and HotpotQA have in common (task-wikihop 8.3, task-hotpotqa 8.3), in the
// order in which they are stored.
#pragma once

#include <vector>

#include "data/dataset.h"

namespace etc::feed {

using FeatureSpecs = std::vector<data::FeatureSpec>;

// A task's features: what says which record an example is and what every long token has; the task's own ones of long
// tokens; what every global token has; the task's other ones.
FeatureSpecs multihop_features(const FeatureSpecs& of_long, const FeatureSpecs& others);

}  // namespace etc::feed
