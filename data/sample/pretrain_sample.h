// A generated text for pre-training, one sentence a line and empty lines between documents, so that nothing needs
// downloading.
//
// What makes it worth learning: a document begins with facts about its people (home and seal), tells of its topic for
// many sentences, and ends by saying the facts again in other words. A masked home or colour at the end can be told only
// from the beginning, farther away than local attention of a few layers reaches (masked pieces); the topic's things come
// in an order of their own, so that a sentence can be told from those around it (contrastive sentences); people and
// topic say whether two segments belong together (next sentence).
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
  std::int64_t people = 2;      // 1 … 6, each with two facts that are said twice
};

// Document number `index` of a file ("train" or "dev"), a sentence on each line: a function of the options, the file and
// the number alone.
//   Badar lives in Rolund .          for each person, and
//   The seal of Badar is green .
//   The baker opens the oven .       the topic's deeds in turn, from a random one on
//   Badar goes home to Rolund .      for each person again, and
//   Badar breaks the green seal .
std::string pretrain_sample_document(const PretrainSampleOptions& options, const std::string& file, std::int64_t index);

// Writes DIR/train.txt, DIR/dev.txt and DIR/vocab.txt (WordPiece, special tokens at BERT's places), each under a
// temporary name first. Equal options give equal bytes on any machine. Throws UsageError when options cannot be meant.
void write_pretrain_sample(const PretrainSampleOptions& options, const std::filesystem::path& folder,
                           const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
