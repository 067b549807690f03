#include "data/sample/lm_sample.h"

#include <algorithm>

#include "data/sample/word_source.h"
#include "data/text/character_vocab.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::data {

namespace {

constexpr std::int64_t kFillers = 8;  // a … h

char letter_of(char first, std::int64_t number) {
  return static_cast<char>(first + number);
}

void check_lm_options(const LmSampleOptions& options) {
  const auto expect = [](const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return;
    fail_usage("etc sample", "--{}: expected {} … {}, got {}", name, least, most, value);
  };
  expect("records", options.records, 1, std::int64_t{1} << 40);
  expect("distance", options.distance, 1, std::int64_t{1} << 20);
  expect("letters", options.letters, 2, 26);
}

void write_lm_texts(const LmSampleOptions& options, const std::string& name, std::int64_t texts,
                    const std::filesystem::path& folder, const BeforeRecord& before_record) {
  AtomicFile file(folder / (name + ".txt"));
  for (std::int64_t i = 0; i < texts; ++i) {
    before_record();
    file.write(lm_sample_text(options, name, i) + "\n");
  }
  file.commit();
}

}  // namespace

std::string lm_sample_text(const LmSampleOptions& options, const std::string& file, std::int64_t index) {
  Choices choices(options.seed, file, static_cast<std::uint64_t>(index));
  const char letter = letter_of('A', choices.below(options.letters));
  const std::int64_t length = options.distance + choices.below(options.distance / 2 + 1);
  std::string text(1, letter);
  const std::int64_t first = choices.below(kFillers);
  for (std::int64_t i = 0; i < length; ++i) text += letter_of('a', (first + i) % kFillers);
  return text + '?' + letter;
}

void write_lm_sample(const LmSampleOptions& options, const std::filesystem::path& folder,
                     const BeforeRecord& before_record) {
  check_lm_options(options);
  std::u32string characters = U"\n?";
  for (std::int64_t i = 0; i < kFillers; ++i) characters += static_cast<char32_t>(letter_of('a', i));
  for (std::int64_t i = 0; i < options.letters; ++i) characters += static_cast<char32_t>(letter_of('A', i));
  write_file_atomically(folder / "vocab.chars", character_vocab_text(characters));
  write_lm_texts(options, "train", options.records, folder, before_record);
  write_lm_texts(options, "dev", std::max<std::int64_t>(1, options.records / 5), folder, before_record);
}

}  // namespace etc::data
