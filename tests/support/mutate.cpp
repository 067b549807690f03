#include "tests/support/mutate.h"

#include <algorithm>

#include "etc_core/base/random.h"

namespace etc::test {

namespace {

// Random numbers for one mutant; each is a pure function of the seed and the number of previous draws.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : key_(mix_key(seed, 0x6d757461746f72ull)) {}
  std::uint64_t next() {
    const Philox4 words = philox({drawn_++, 0, 0, 0}, key_);
    return (std::uint64_t{words[0]} << 32) | words[1];
  }
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : static_cast<std::size_t>(next() % bound); }

  // Lengths of ranges: mostly short, sometimes anything up to `bound`.
  std::size_t length(std::size_t bound) { return std::min(bound, below(4) == 0 ? 1 + below(bound) : 1 + below(16)); }

 private:
  std::uint64_t key_;
  std::uint32_t drawn_ = 0;
};

// A little-endian integer of `width` bytes with a value that is likely to break size arithmetic.
std::string extreme_integer(Dice& dice, std::size_t width) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * width);
  const std::uint64_t choices[] = {0,        1,       all,           all - 1,    all >> 1, (all >> 1) + 1,
                                   all >> 8, all / 3, all & 0x7F80u, dice.next()};
  const std::uint64_t value = choices[dice.below(std::size(choices))];
  std::string bytes(width, '\0');
  for (std::size_t i = 0; i < width; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

void damage_once(std::string& bytes, Dice& dice, std::size_t longest) {
  const std::size_t size = bytes.size();
  const std::size_t at = dice.below(size);
  switch (dice.below(7)) {
    case 0:  // one bit
      if (size > 0) bytes[at] = static_cast<char>(bytes[at] ^ (1 << dice.below(8)));
      return;
    case 1:  // one byte
      if (size > 0) bytes[at] = static_cast<char>(dice.next());
      return;
    case 2: {  // a few inserted bytes
      std::string inserted;
      for (std::size_t i = 1 + dice.below(8); i > 0; --i) inserted += static_cast<char>(dice.next());
      bytes.insert(at, inserted);
      return;
    }
    case 3:  // a deleted range
      bytes.erase(at, dice.length(size - at));
      return;
    case 4: {  // a duplicated range
      const std::size_t room = longest > size ? longest - size : 0;
      const std::string range = bytes.substr(at, std::min(dice.length(size - at), room));
      bytes.insert(dice.below(size + 1), range);
      return;
    }
    case 5:  // truncation
      bytes.resize(at);
      return;
    default: {  // an extreme number
      const std::size_t width = std::size_t{1} << dice.below(4);
      if (size >= width) bytes.replace(dice.below(size - width + 1), width, extreme_integer(dice, width));
      return;
    }
  }
}

}  // namespace

std::string mutate(const std::string& bytes, std::uint64_t seed) {
  Dice dice(seed);
  std::string mutant = bytes;
  const std::size_t longest = 2 * bytes.size() + 256;
  for (std::size_t left = 1 + dice.below(4); left > 0; --left) damage_once(mutant, dice, longest - 64);
  if (mutant.size() > longest) mutant.resize(longest);
  return mutant;
}

}  // namespace etc::test
