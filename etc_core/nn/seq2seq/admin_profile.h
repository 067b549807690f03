// ADMIN's profile pass, which sets the numbers on the skips before training (Liu et al. 2020; translation 3).
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

}  // namespace etc
