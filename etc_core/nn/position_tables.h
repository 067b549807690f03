// Fixed tables of sines and cosines over positions or distances (relative-positions 2 and 7).
//
// Three layouts are in use that are not interchangeable. With D columns and the angles p·10000^(-2i/D):
//   interleaved   sin, cos, sin, cos, …                        Vaswani et al. (2017)
//   halves_xl     D/2 sines, then D/2 cosines                  Transformer-XL, XLNet
//   halves_t2t    the same with p·10000^(-i/(D/2 - 1))         tensor2tensor, fairseq
#pragma once

#include <cstdint>
#include <vector>

namespace etc {

enum class SinusoidLayout { interleaved, halves_t2t, halves_xl };

// [positions, columns], row-major, computed in double. Positions are used as given, including negative ones: fairseq
// begins at padding id + 1 = 2 and has a row of zeros for padding, which the caller must handle. An odd number of
// columns leaves an unpaired sine (interleaved) or a last column of zeros (halves). Throws Error when columns < 1.
std::vector<float> sinusoids(SinusoidLayout layout, const std::vector<std::int64_t>& positions, std::int64_t columns);

// The argument of NEZHA's sinusoids: the signed distance -k … k, as in its paper, or the row number 0 … 2k, as in its
// released program and checkpoints. The two differ by a rotation of every sine and cosine.
enum class NezhaRows { index, signed_distance };

// [2k+1, columns], interleaved: row clip(distance, k) + k. Throws Error when k < 0 or columns < 1.
std::vector<float> nezha_table(NezhaRows rows, std::int64_t k, std::int64_t columns);

}  // namespace etc
