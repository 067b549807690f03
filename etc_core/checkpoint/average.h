// The mean of several checkpoints of one training (translation 9).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace etc {

// Writes a model directory whose every parameter is the arithmetic mean of those of the models: summed in double, in the
// order given, and rounded to fp32 once, so that one model, or equal ones, stay as they are. Configuration, vocabulary and
// what else raw texts are read with (kept_names.h) are the last model's; the optimiser's state is not taken along.
// `written` is called after each tensor with how many there are by now. Returns a line for people.
// Rules: throws UsageError without a model or when the output is one of them; Error naming the first difference where the
//   models' encoders, tasks or vocabularies differ, a tensor is missing in one of them or has another shape, or a number
//   is not finite.
std::string average_models(const std::vector<std::filesystem::path>& models, const std::filesystem::path& output,
                           const std::function<void(std::int64_t tensors)>& written = {});

}  // namespace etc
