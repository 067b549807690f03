// Counter-based random numbers (Philox4x32-10; Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC 2011).
//
// A number is a pure function of a key and a counter; there is no generator state. So the numbers do not depend on
// recomputation, thread count, the other examples of the batch, or on resuming a run. Header-only, C++17 and constexpr,
// because kernels of every backend use it.
#pragma once

#include <array>
#include <cstdint>

namespace etc {

using Philox4 = std::array<std::uint32_t, 4>;

// Constants of the rounds; philox-inl.h has the vector version.
inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53u, kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kPhiloxKeyStep0 = 0x9E3779B9u, kPhiloxKeyStep1 = 0xBB67AE85u;

// Ten rounds on (counter, key).
constexpr Philox4 philox(Philox4 counter, std::uint64_t key) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{kPhiloxMultiplier0} * counter[0];
    const std::uint64_t p1 = std::uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += kPhiloxKeyStep0;
    k1 += kPhiloxKeyStep1;
  }
  return counter;
}

// [0, 1) on a grid of 2^-24.
constexpr float uniform_from_bits(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// Mixes two words into a key (SplitMix64's finaliser), for deriving sub-streams.
constexpr std::uint64_t mix_key(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15ull * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Where dropout is applied; part of its key, so that no two sites share numbers.
enum class DropoutSite : std::uint32_t {
  long_embedding,
  global_embedding,
  long_attention,
  global_attention,
  long_attention_output,
  global_attention_output,
  long_feed_forward,
  global_feed_forward,
  head,
};

// Key of one dropout stream: (run seed, ordinal of the sample in the run, layer, site). Element numbers go into the
// counter, see dropout_bits.
constexpr std::uint64_t dropout_key(std::uint64_t seed, std::uint64_t sample_ordinal, std::uint32_t layer,
                                    DropoutSite site) {
  return mix_key(mix_key(seed, sample_ordinal), (std::uint64_t{layer} << 32) | static_cast<std::uint32_t>(site));
}

// The 32 random bits of element (a, b, c) of a stream. Four neighbours in c share one Philox call: element c is word
// c mod 4 of the block with counter (c/4, b, a, 0). Attention: a = head, b = query, c = key, both counted within the
// example (global_attention: keys [0, G) are g2g, keys [G, G+L) are g2l; long_attention: keys [0, L) are l2l, keys
// [L, L+G) are l2g). Hidden states: a = 0, b = token within the example, c = column.
constexpr Philox4 dropout_block(std::uint64_t key, std::uint32_t a, std::uint32_t b, std::uint32_t c_div_4) {
  return philox({c_div_4, b, a, 0}, key);
}

// An element is kept iff its bits are >= this threshold; kept values are multiplied by 1/(1-rate).
constexpr std::uint32_t dropout_threshold(float rate) {
  const double t = static_cast<double>(rate) * 4294967296.0;
  return t >= 4294967295.0 ? 4294967295u : static_cast<std::uint32_t>(t);
}

}  // namespace etc
