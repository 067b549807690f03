// Shapes with legend letters, for messages: shape_text({{"T", 8192}, {"N", 12}, {"D", 64}}) is "[T=8192, N=12, D=64]".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

namespace etc {

std::string shape_text(std::initializer_list<std::pair<const char*, std::int64_t>> sizes);

// Without letters: [2, 64].
std::string shape_text(std::span<const std::int64_t> sizes);

}  // namespace etc
