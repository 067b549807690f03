// Libraries whose version decides about the bits of results.
#pragma once

#include <string>

namespace etc::ops {

// What multiplies fp32 matrices on the CPU: "oneDNN 3.1.1 AVX2": the library as loaded at run time, the kind of
// instructions it takes, and the variables of the environment that turn it to other number types; or "plain loops".
std::string product_library();

// What the vector kernels are written with: "Highway 1.0.7", as compiled in.
std::string vector_library();

}  // namespace etc::ops
