// ADMIN's profile pass, and folding of its numbers into norms and kernels (Liu et al. 2020; translation 3).
#pragma once

#include <string>
#include <vector>

#include "etc_core/nn/seq2seq/encoder_decoder.h"

namespace etc {

// The result of a profile pass for one sub-layer.
struct AdminBranch {
  Parameter* omega = nullptr;
  double value = 1;            // ω, the same for all H columns
  double skip_variance = 0;    // of ω·x
  double branch_variance = 0;  // of f(x), after its dropout
};

// Sets ω of every sub-layer from one forward pass of a batch, without backward. For encoder and decoder separately,
// each beginning with R = 1, in order of execution:
//   ω := R,   R := sqrt(Var(ω·x) + Var(f(x)))
// The variances are population variances over all elements of the batch's tokens, summed in double in order. The pass
// continues with the ω just set. Previous values of ω have no effect; other parameters are unchanged. Deterministic for
// given values, batch, seed and step. With options.training dropout is active, as in the reference, and drawn as in a
// training step.
// Rules: throws Error if the model does not have norm admin, if there are no tokens, or if a variance is not a number.
// Returns the sub-layers in order of execution, encoder first.
std::vector<AdminBranch> profile_admin(Seq2SeqEncoder& encoder, Seq2SeqDecoder& decoder, const EncoderInput& source,
                                       const DecoderInput& target, const ForwardOptions& options);

// The profile as text: a line "index value" for each sub-layer, counted from 1 in encoder and decoder separately.
std::string admin_profile_text(const std::vector<AdminBranch>& profile);

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
