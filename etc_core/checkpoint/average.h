// The mean of several checkpoints of one training run (translation 9).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace etc {

// Writes a model directory in which every parameter is the arithmetic mean over the models: summed in double, in the
// order given, and rounded to fp32 once, so that one model, or equal ones, give the same weights. Configuration,
// vocabulary and other files for raw texts (kept_names.h) are copied from the last model; the optimiser state is not.
// `written` is called after each tensor with the number written so far. Returns a message line.
// Rules: throws UsageError without a model or when the output is one of them; Error naming the first difference when
//   the models' encoders, tasks or vocabularies differ, a tensor is missing in one of them or has another shape, or a
//   number is not finite.
std::string average_models(const std::vector<std::filesystem::path>& models, const std::filesystem::path& output,
                           const std::function<void(std::int64_t tensors)>& written = {});

}  // namespace etc
