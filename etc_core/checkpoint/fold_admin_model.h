// Folds ADMIN's scales of a trained encoder-decoder into its weights, for inference (translation 3).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace etc {

// Writes a model directory of norm admin_folded that computes the same as `model`, an encoder-decoder of norm admin
// (fold_admin in nn/seq2seq/admin_fold.h: equal except for rounding). Other settings, vocabulary and further files
// for raw texts are kept; the optimiser's state is not. `written` is called after each tensor with the number written
// so far. Returns a message line.
// Rules: throws UsageError for a model of another kind or norm, Error on damaged files and on a scale of 0.
std::string fold_admin_model(const std::filesystem::path& model, const std::filesystem::path& output,
                             const std::function<void(std::int64_t tensors)>& written = {});

}  // namespace etc
