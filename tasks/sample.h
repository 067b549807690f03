// What a generator of records is to `etc sample`: its options, and the files it writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace etc {

// One choice a generator leaves to its user; also an option (long_tokens: --long-tokens).
struct SampleKey {
  std::string key;
  std::int64_t default_value;
  std::string help;
};
using SampleValues = std::map<std::string, std::int64_t>;

// The generator as the task's row of tasks/registry.h holds it.
struct SampleKind {
  const char* extension;  // of its train and dev files; vocab.txt lies beside them
  std::vector<SampleKey> keys;
  // Every key has a value. Throws UsageError when values cannot be meant. Null: the task has no generator.
  void (*write)(const SampleValues& values, const std::filesystem::path& folder);
};

// Keys that every generator has.
SampleKey records_key();
SampleKey seed_key();
std::uint64_t seed_of(const SampleValues& values);  // throws UsageError on a negative one

}  // namespace etc
