// Hidden dropout in double: the generator as in its paper, the keys as in etc-core 6.4. Shares no code with the library.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/reference/dense.h"

namespace etc::test {

using Words4 = std::array<std::uint32_t, 4>;

// Philox4x32-10: Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. One round is
//   (c0, c1, c2, c3) -> (hi(M1·c2) ^ c1 ^ k0, lo(M1·c2), hi(M0·c0) ^ c3 ^ k1, lo(M0·c0))
// with the halves of 64-bit products. The keys of round r are (k0 + r·W0, k1 + r·W1) modulo 2^32, where W0 and W1 are the
// golden ratio minus 1 and the square root of 3 minus 1, as fractions of 2^32.
inline Words4 reference_philox(Words4 c, std::uint32_t k0, std::uint32_t k1) {
  constexpr std::uint64_t kWord = std::uint64_t{1} << 32;
  constexpr std::uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
  const auto w0 = static_cast<std::uint64_t>((std::sqrt(5.0) - 1) / 2 * static_cast<double>(kWord));
  const auto w1 = static_cast<std::uint64_t>((std::sqrt(3.0) - 1) * static_cast<double>(kWord));
  for (std::uint64_t round = 0; round < 10; ++round) {
    const std::uint64_t key_0 = (k0 + round * w0) % kWord, key_1 = (k1 + round * w1) % kWord;
    const std::uint64_t p0 = kM0 * c[0], p1 = kM1 * c[2];
    const std::uint64_t next[] = {p1 / kWord ^ c[1] ^ key_0, p1 % kWord, p0 / kWord ^ c[3] ^ key_1, p0 % kWord};
    for (std::size_t i = 0; i < 4; ++i) c[i] = static_cast<std::uint32_t>(next[i]);
  }
  return c;
}

// Number n (from 0) of the generator SplitMix64 that starts at `seed`.
inline std::uint64_t reference_split_mix(std::uint64_t seed, std::uint64_t n) {
  std::uint64_t z = seed + (n + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

struct ReferenceDropout {
  double rate = 0;
  std::uint64_t seed = 0, layer = 0, site = 0;
  std::vector<std::int64_t> offsets;    // [B+1] rows of each example
  std::vector<std::uint64_t> ordinals;  // [B]
};

// The factor of each element of a [M, cols] block: 1/(1-rate) if it is kept, else 0. Element (token t, column c) of an
// example is kept iff word c mod 4 of Philox with the counter (c/4, t, 0, 0) is at least rate·2^32, rounded down. The key is
// number (layer, site) of SplitMix64 started at number `ordinal` of SplitMix64 started at the seed.
inline Reals reference_dropout_factors(const ReferenceDropout& of, std::int64_t cols) {
  Reals factors;
  for (std::size_t b = 0; b < of.ordinals.size(); ++b) {
    const std::uint64_t sample = reference_split_mix(of.seed, of.ordinals[b]);
    const std::uint64_t key = reference_split_mix(sample, (of.layer << 32) + of.site);
    for (std::int64_t token = 0; token < of.offsets[b + 1] - of.offsets[b]; ++token) {
      for (std::int64_t col = 0; col < cols; ++col) {
        const Words4 counter = {static_cast<std::uint32_t>(col / 4), static_cast<std::uint32_t>(token), 0, 0};
        const Words4 words =
            reference_philox(counter, static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32));
        const bool kept = words[static_cast<std::size_t>(col % 4)] >= std::floor(of.rate * 4294967296.0);
        factors.push_back(kept ? 1 / (1 - of.rate) : 0);
      }
    }
  }
  return factors;
}

// base + dropout(a); base empty: dropout(a). Linear in both, so the magnitudes of both give the magnitudes of the
// terms.
inline Reals reference_dropout_add(const ReferenceDropout& of, std::int64_t cols, const Reals& a, const Reals& base) {
  Reals y = reference_dropout_factors(of, cols);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = (base.empty() ? 0 : base[i]) + y[i] * a[i];
  return y;
}

}  // namespace etc::test
