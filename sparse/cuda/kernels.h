// What register_cuda.cpp calls: each operator fills its own slots.
#pragma once

namespace etc::sparse::cuda {

void register_long_attention();
void register_global_attention();

}  // namespace etc::sparse::cuda
