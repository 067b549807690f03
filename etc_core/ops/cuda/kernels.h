// The functions that register_cuda.cpp calls. Each file of operators fills its own slots.
#pragma once

namespace etc::ops::cuda {

void register_embedding();
void register_linear();
void register_pointwise();
void register_segments();
void register_top_k();
void register_update();

}  // namespace etc::ops::cuda
