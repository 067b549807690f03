// The kinds of activation; a separate header from activation.h because device code (C++17) includes it.
#pragma once

namespace etc::ops {

enum class Activation : int { linear, relu, tanh, gelu, gelu_erf };

}  // namespace etc::ops
