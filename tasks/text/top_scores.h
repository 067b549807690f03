// Selection by scores: softmax, the largest values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace etc::text {

// Positions of the `count` largest values (of all, if there are fewer), largest first; among equals the lower position
// first. Cost: O(n log count).
std::vector<std::int64_t> largest(std::span<const float> values, std::int64_t count);

// The first position of the largest value; at least one value.
std::int64_t first_largest(std::span<const float> values);

// exp(z_i − max)/Σ, computed in double.
std::vector<float> softmax(std::span<const float> logits);

// Throws Error naming the example when a logit is NaN or infinite.
void require_finite(std::span<const float> logits, const std::string& example_id);

}  // namespace etc::text
