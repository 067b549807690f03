// WikiHop examples in memory for tests: the worked layout of task-wikihop 2.7, and small random ones to train on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/loader/loader.h"
#include "etc_core/nn/etc_config.h"

namespace etc::test {

// Two candidates (norway, new york), two query tokens, two documents: L = 14, G = 9; every feature of the schema.
// The ordinal is also in its id, "worked_<ordinal>".
data::LoadedExample worked_example(std::int64_t ordinal);

// A question whose answer is stated in the text: four candidates, and a document whose one sentence names the answer,
// linked to its candidate, among filler tokens. A pure function of the ordinal; lengths differ from one to the next.
data::LoadedExample readable_example(std::int64_t ordinal);

// Prepared data of the readable examples first … first+count-1, labelled, with a vocabulary of that name.
void write_readable_dataset(const std::filesystem::path& path, std::int64_t first, std::int64_t count,
                            const std::string& vocabulary = "v1", const std::vector<data::MissingPart>& missing = {});

// Two layers, H = 16, two heads, radius 4, k = 4, no dropout, room for 64 token ids.
EtcConfig tiny_model();

}  // namespace etc::test
