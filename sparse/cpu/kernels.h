// What register_cpu.cpp calls: each operator fills its own slots.
#pragma once

namespace etc::sparse {

void register_long_attention_cpu();
void register_global_attention_cpu();

}  // namespace etc::sparse
