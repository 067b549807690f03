// Names of files that a model keeps beside its weights for raw texts, but for its vocabulary (vocabulary_names).
#pragma once

#include <array>

namespace etc {

// Sentence boundaries as Punkt learned them; the last one is there only where all are.
inline constexpr std::array<const char*, 4> kPunktTables = {"abbrev_types.txt", "collocations.tab", "sent_starters.txt",
                                                            "ortho_context.tab"};
// The vocabulary as other programs read it.
inline constexpr const char* kTokenizerJson = "tokenizer.json";

}  // namespace etc
