#include "etc_core/base/random.h"

#include <set>

#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("Philox gives the known answers of its authors", "[base]") {
  // Known-answer vectors of Philox4x32-10 published with Random123.
  REQUIRE(philox({0, 0, 0, 0}, 0) == Philox4{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  REQUIRE(philox({0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}, 0xffffffffffffffffull) ==
          Philox4{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
}

TEST_CASE("dropout keys differ between seeds, samples, layers and sites", "[base]") {
  std::set<std::uint64_t> keys;
  for (std::uint64_t seed : {0, 1}) {
    for (std::uint64_t sample : {0, 1, 1000}) {
      for (std::uint32_t layer : {0, 1, 11}) {
        for (auto site : {DropoutSite::long_attention, DropoutSite::global_attention, DropoutSite::head}) {
          keys.insert(dropout_key(seed, sample, layer, site));
        }
      }
    }
  }
  REQUIRE(keys.size() == 2 * 3 * 3 * 3);
}

TEST_CASE("the share of kept elements is one minus the dropout rate", "[base]") {
  const std::uint32_t threshold = dropout_threshold(0.1f);
  int kept = 0;
  constexpr int kBlocks = 25000;
  for (std::uint32_t c = 0; c < kBlocks; ++c) {
    for (std::uint32_t bits : dropout_block(dropout_key(7, 3, 2, DropoutSite::head), 0, 5, c))
      kept += bits >= threshold;
  }
  // Four standard deviations of a binomial with n = 100,000, p = 0.9.
  REQUIRE(std::abs(kept - 90000) < 4 * 95);
  REQUIRE(dropout_threshold(0.0f) == 0);
}
