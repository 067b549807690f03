// The features of a prepared GLUE data set: one example is one row (dense-transformer 4.2).
#pragma once

#include "data/dataset.h"

namespace etc::glue {

const data::Schema& schema();

}  // namespace etc::glue
