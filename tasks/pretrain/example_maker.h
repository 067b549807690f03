// Instance → example of the schema (schema.h), with its masks unless they are dynamic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/text/tokenizer.h"
#include "etc_core/base/not_copied.h"
#include "tasks/prepare/bytes.h"
#include "tasks/pretrain/instances.h"
#include "tasks/pretrain/masking.h"
#include "tasks/pretrain/prepare_config.h"
#include "tasks/pretrain/token_store.h"

namespace etc::pretrain {

// The purposes of draws from one seed; different purposes use different random numbers.
enum class DrawnFor : std::uint64_t { instances = 1, masks = 2, order = 3 };
constexpr std::uint64_t seed_for(std::uint64_t seed, DrawnFor end) {
  return mix_key(seed, static_cast<std::uint64_t>(end));
}

// The properties of a vocabulary that masking needs.
struct MaskVocabulary {
  // Throws Error naming the piece when the vocabulary has no [CLS], [SEP] or [MASK].
  explicit MaskVocabulary(const data::Tokenizer& tokenizer);

  std::int64_t cls, sep, mask;
  // PieceKind of each id. A piece continues a word where it begins with "##" (WordPiece), or does not begin with "▁"
  // (SentencePiece) (2.3, step 4).
  std::vector<std::uint8_t> kinds;
};

// A reusable example with its features looked up once; making another example in the same place allocates nothing.
class ExamplePlace : NotCopied {
 public:
  ExamplePlace();
  const data::Example& example() const { return example_; }

  // Serialises the features, to be sent to another process.
  void put_into(prepare::ByteWriter& bytes) const;
  void take_from(prepare::ByteReader& bytes);

 private:
  friend class ExampleMaker;
  template <typename Value>
  Value& feature(const char* name);

  data::Example example_;  // its nodes keep their addresses
  std::string& id_;
  std::int64_t &record_, &first_segment_, &label_;
  std::vector<std::int64_t>&ids_, &kinds_, &masked_positions_, &masked_ids_, &sentence_lengths_, &cpc_sentences_;
};

class ExampleMaker {
 public:
  // config: with a value for every key (read_prepare_config).
  ExampleMaker(const PrepareConfig& config, const data::Tokenizer& tokenizer);

  // index: the calling thread's view of the store. Thread-safe otherwise.
  void make(const Instance& instance, const TokenStore& store, TextIndex& index, ExamplePlace& place) const;

 private:
  void add_pair(const Instance& instance, const TokenStore& store, std::vector<std::int64_t>& ids) const;

  PrepareConfig config_;
  MaskVocabulary pieces_;
  MaskRules rules_;
};

}  // namespace etc::pretrain
