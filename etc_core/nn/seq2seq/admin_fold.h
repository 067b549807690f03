// Folding of ADMIN's numbers on the skips into norms and kernels, for inference (Liu et al. 2020; translation 3).
#pragma once

#include "etc_core/nn/parameters.h"

namespace etc {

// Converts a model of norm admin to one that computes the same with norm admin_folded. That has an ω only in each
// stack's first sub-layer, whose x is the embedding sum, so no norm before it can absorb ω.
//   A sub-layer reads x̃ = ω⊙x instead of x: γ and β of the norm before it are multiplied by ω, and rows of the kernels
//   that read x are divided by ω (query; key and value except in cross-attention; the inner layer). The final results
//   of encoder and decoder are unchanged.
// from: parameters of an encoder-decoder of norm admin; to: parameters of the same model with norm admin_folded, filled
// by this function.
// Rules: throws Error naming the parameter if an ω is 0 or nan, or if names or shapes do not match. Arithmetic in
// double.
void fold_admin(const ParameterSet& from, ParameterSet& to);

}  // namespace etc
