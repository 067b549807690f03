// ADMIN's profile pass, and its numbers folded into norms and kernels (Liu et al. 2020; translation 3).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/nn/seq2seq/encoder_decoder.h"

namespace etc {

// What a profile pass found of one sub-layer.
struct AdminBranch {
  Parameter* omega = nullptr;
  double value = 1;            // ω, all H numbers
  double skip_variance = 0;    // of ω·x
  double branch_variance = 0;  // of f(x), after its dropout
};

// Sets ω of every sub-layer from one forward pass of a batch, without backward: in order of execution, of encoder and
// decoder apart, each beginning with R = 1,
//   ω := R,   R := sqrt(Var(ω·x) + Var(f(x)))
// where the variances are those of all numbers of the batch's real tokens (population), summed in double in order. The
// pass goes on with the ω just set. Values ω had do not matter; all else keeps its own. Deterministic for values, batch,
// seed and step; options.training: dropout acts, as in the reference, drawn as a step's would be.
// Rules: throws Error when the model is not one of norm admin, has no tokens, or a variance is not a number. In order of
// execution, encoder first.
std::vector<AdminBranch> profile_admin(Seq2SeqEncoder& encoder, Seq2SeqDecoder& decoder, const EncoderInput& source,
                                       const DecoderInput& target, const ForwardOptions& options);

// The profile for people and for other programs: a line "index value" for each sub-layer, counted from 1 in encoder and
// decoder apart.
std::string admin_profile_text(const std::vector<AdminBranch>& profile);

// A model that computes the same as one of norm admin, without its numbers but for those of each stack's first sub-layer
// (norm admin_folded), whose x is the embedding sum and comes from no norm that could take them up.
//   A sub-layer reads x̃ = ω⊙x instead of x: γ, β of the norm before times ω, rows of the kernels that read x (query; key
//   and value but across; the inner layer) divided by ω. The encoder's and the decoder's last results stay.
// from: parameters of an encoder-decoder of norm admin; to: of the same one of norm admin_folded, filled here.
// Rules: throws Error naming the parameter when an ω is 0 or nan, or names and shapes do not fit. Arithmetic in double.
void fold_admin(const ParameterSet& from, ParameterSet& to);

}  // namespace etc
