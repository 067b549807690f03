// Shapes of tensors: their texts in messages, with the legend's letters, and their sizes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

namespace etc {

// shape_text({{"T", 8192}, {"N", 12}, {"D", 64}}) is "[T=8192, N=12, D=64]".
std::string shape_text(std::initializer_list<std::pair<const char*, std::int64_t>> sizes);

// Without letters: [2, 64].
std::string shape_text(std::span<const std::int64_t> sizes);

// The number of elements of a tensor of this shape: the product of the sizes, 1 without any.
std::int64_t element_count(std::span<const std::int64_t> sizes);

}  // namespace etc
