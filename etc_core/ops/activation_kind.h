// Which activation; apart from activation.h because device code, C++17, reads it.
#pragma once

namespace etc::ops {

enum class Activation : int { linear, relu, tanh, gelu, gelu_erf };

}  // namespace etc::ops
