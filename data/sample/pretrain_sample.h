// A generated text for pre-training that needs no download: one sentence per line, empty lines between documents.
//
// What a model can learn: a document begins with facts about its people (home and seal), continues with its topic for
// many sentences, and ends by repeating the facts in other words. Masked pieces: a masked home or colour at the end can
// be predicted only from the beginning, which is beyond the reach of a few layers of local attention. Contrastive
// sentences: the topic's actions come in a fixed order, so that a sentence follows from those around it. Next sentence:
// people and topic show whether two segments belong together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/sample/before_record.h"

namespace etc::data {

struct PretrainSampleOptions {
  std::int64_t records = 2000;  // documents of the training file; the dev file has a fifth of it, at least one
  std::uint64_t seed = 1;
  std::int64_t sentences = 24;  // of a document
  std::int64_t people = 2;      // 1 … 6, each with two facts that are stated twice
};

// Document number `index` of a file ("train" or "dev"), one sentence per line: a function of the options, the file and
// the number alone.
//   Badar lives in Rolund .          for each person, and
//   The seal of Badar is green .
//   The baker opens the oven .       the topic's actions in order, from a random one on
//   Badar goes home to Rolund .      for each person again, and
//   Badar breaks the green seal .
std::string pretrain_sample_document(const PretrainSampleOptions& options, const std::string& file, std::int64_t index);

// Writes DIR/train.txt, DIR/dev.txt and DIR/vocab.txt (WordPiece, special tokens at BERT's places), each under a
// temporary name first. Equal options give equal bytes on any machine. Throws UsageError on invalid options.
void write_pretrain_sample(const PretrainSampleOptions& options, const std::filesystem::path& folder,
                           const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
