// The features of a prepared SQuAD data set: one example is one window of a question's text (dense-transformer 5.2).
#pragma once

#include "data/dataset.h"

namespace etc::squad {

// /gold holds a row per question, including those without a window.
const data::Schema& schema();

// The target of windows that are not for training.
inline constexpr std::int64_t kNoTarget = -1;

}  // namespace etc::squad
