// Names of files for raw texts that a model keeps beside its weights, except its vocabulary (vocabulary_names).
#pragma once

#include <array>

namespace etc {

// Sentence boundaries as learned by Punkt; if the last file exists, all of them do.
inline constexpr std::array<const char*, 4> kPunktTables = {"abbrev_types.txt", "collocations.tab", "sent_starters.txt",
                                                            "ortho_context.tab"};
// The vocabulary in the format that other programs read.
inline constexpr const char* kTokenizerJson = "tokenizer.json";

}  // namespace etc
