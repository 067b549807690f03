#include "tasks/pretrain/example_maker.h"

#include <string>
#include <utility>

#include "etc_core/base/error.h"
#include "tasks/pretrain/schema.h"

namespace etc::pretrain {

namespace {

using Numbers = std::vector<std::int64_t>;

std::uint8_t kind_of(const data::Tokenizer& tokenizer, std::int32_t id) {
  const std::string piece = tokenizer.piece(id);
  const bool wordpiece = std::string(tokenizer.kind()) == "wordpiece";
  const bool begins = wordpiece ? !piece.starts_with("##") : piece.starts_with("\u2581");
  return begins ? kBegins : kContinues;
}

MaskRules rules_of(const PrepareConfig& config, const MaskVocabulary& pieces) {
  MaskRules rules;
  rules.masked_lm_prob = config.masked_lm_prob;
  rules.max_predictions = *config.max_predictions_per_seq;
  rules.whole_words = config.whole_word_mask.get<bool>();
  rules.cpc_sentence_prob = config.cpc_sentence_prob;
  rules.mask_id = pieces.mask;
  rules.vocab_size = std::ssize(pieces.kinds);
  return rules;
}

}  // namespace

MaskVocabulary::MaskVocabulary(const data::Tokenizer& tokenizer)
    : cls(tokenizer.piece_id("[CLS]")), sep(tokenizer.piece_id("[SEP]")), mask(tokenizer.piece_id("[MASK]")) {
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) kinds.push_back(kind_of(tokenizer, id));
  kinds[static_cast<std::size_t>(cls)] = kinds[static_cast<std::size_t>(sep)] = kSpecial;
}

ExampleMaker::ExampleMaker(const PrepareConfig& config, const data::Tokenizer& tokenizer)
    : config_(config), pieces_(tokenizer), rules_(rules_of(config_, pieces_)) {}

data::Example ExampleMaker::make(const Instance& instance, const TokenStore& store, TextIndex& index) const {
  const bool pair = instance.sentences == 0, cpc = config_.objective == Objective::mlm_cpc;
  Numbers ids{pieces_.cls}, sentence_lengths;
  store.read_pieces(instance.a, ids);
  if (!cpc) ids.push_back(pieces_.sep);
  const std::int64_t first_segment = std::ssize(ids);
  if (pair) {
    store.read_pieces(instance.b, ids);
    ids.push_back(pieces_.sep);
  }
  Numbers kinds;
  kinds.reserve(ids.size());
  for (const std::int64_t id : ids) kinds.push_back(pieces_.kinds[static_cast<std::size_t>(id)]);
  for (std::int64_t s = 0; cpc && s < instance.sentences; ++s) {
    const std::int64_t begin = index.first_piece(instance.first_sentence + s);
    sentence_lengths.push_back(index.first_piece(instance.first_sentence + s + 1) - begin);
    // No word goes on from one sentence into the next one, which may be hidden; a sentence that was cut may begin so.
    std::int64_t& kind = kinds[static_cast<std::size_t>(begin - instance.a.begin + 1)];
    if (kind == kContinues) kind = kBegins;
  }
  Masks masks;
  if (!config_.dynamic_masking) {
    const auto text = mix_key(static_cast<std::uint64_t>(instance.copy), static_cast<std::uint64_t>(instance.document));
    CounterDraws draws(
        draws_key(seed_for(config_.random_seed, DrawnFor::masks), text, static_cast<std::uint64_t>(instance.number)));
    masks = draw_masks({ids, kinds, sentence_lengths}, rules_, draws);
  }
  data::Example example;
  example["id"] = fmt::format("{}.{}.{}", instance.copy, instance.document, instance.number);
  example["record_index"] = instance.document;
  example["first_segment_length"] = first_segment;
  example["next_sentence_label"] = instance.random_next;
  example["long_token_ids"] = std::move(ids);
  example["piece_kinds"] = std::move(kinds);
  example["masked_positions"] = std::move(masks.positions);
  example["masked_input_ids"] = std::move(masks.input_ids);
  example["sentence_lengths"] = std::move(sentence_lengths);
  example["cpc_sentences"] = std::move(masks.cpc_sentences);
  return example;
}

}  // namespace etc::pretrain
