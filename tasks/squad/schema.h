// The features of a prepared SQuAD data set: one example is one window of a question's text (dense-transformer 5.2).
#pragma once

#include "data/dataset.h"

namespace etc::squad {

// /gold holds a row per question, those without a window included.
const data::Schema& schema();

// A target of windows that nobody trains on.
inline constexpr std::int64_t kNoTarget = -1;

}  // namespace etc::squad
