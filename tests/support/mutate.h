// Reproducible damaged copies of a file, which mutation tests feed to readers.
#pragma once

#include <cstdint>
#include <string>

namespace etc::test {

// A damaged copy of `bytes`, a pure function of (bytes, seed): one to four of bit flip, byte overwritten, bytes
// inserted, range deleted, range duplicated, truncation, an integer of 1, 2, 4 or 8 bytes replaced by an extreme value.
// The result may equal the original; it is never longer than twice the original plus 256 bytes.
std::string mutate(const std::string& bytes, std::uint64_t seed);

}  // namespace etc::test
