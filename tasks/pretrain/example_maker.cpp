#include "tasks/pretrain/example_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tasks/pretrain/schema.h"
#include "tasks/pretrain/special_pieces.h"

namespace etc::pretrain {

namespace {

using Numbers = std::vector<std::int64_t>;

std::uint8_t kind_of(const data::Tokenizer& tokenizer, std::int32_t id) {
  const std::string piece = tokenizer.piece(id);
  const char* blank = text::is_byte_bpe(tokenizer) ? "\u0120" : "\u2581";
  const bool wordpiece = std::string(tokenizer.kind()) == "wordpiece";
  const bool begins = wordpiece ? !piece.starts_with("##") : piece.starts_with(blank);
  return begins ? kBegins : kContinues;
}

MaskRules rules_of(const PrepareConfig& config, const MaskVocabulary& pieces) {
  MaskRules rules;
  rules.masked_lm_prob = config.masked_lm_prob;
  if (config.objective != Objective::mlm_cpc) rules.max_predictions = *config.max_predictions_per_seq;
  rules.whole_words = config.whole_word_mask.get<bool>();
  rules.cpc_sentence_prob = config.cpc_sentence_prob;
  rules.mask_id = pieces.mask;
  rules.vocab_size = std::ssize(pieces.kinds);
  return rules;
}

}  // namespace

MaskVocabulary::MaskVocabulary(const data::Tokenizer& tokenizer)
    : cls(text::special_id(tokenizer, kCls)),
      sep(text::special_id(tokenizer, kSep)),
      mask(text::special_id(tokenizer, kMask)) {
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) kinds.push_back(kind_of(tokenizer, id));
  kinds[static_cast<std::size_t>(cls)] = kinds[static_cast<std::size_t>(sep)] = kSpecial;
}

// Appends A [SEP] B [SEP]. If B actually follows A, only truncated pieces lie between them, so one read fetches both.
void ExampleMaker::add_pair(const Instance& instance, const TokenStore& store, Numbers& ids) const {
  constexpr std::int64_t kClose = 64;  // pieces
  const auto [a, b] = std::pair(instance.a, instance.b);
  const std::int64_t between = b.begin - a.begin - a.length;
  const auto separator = std::ssize(ids) + a.length;
  if (between >= 0 && between <= kClose) {
    store.read_pieces({a.begin, a.length + between + b.length}, ids);
    ids.erase(ids.begin() + separator, ids.begin() + separator + between);
    ids.insert(ids.begin() + separator, pieces_.sep);
  } else {
    store.read_pieces(a, ids);
    ids.push_back(pieces_.sep);
    store.read_pieces(b, ids);
  }
  ids.push_back(pieces_.sep);
}

template <typename Value>
Value& ExamplePlace::feature(const char* name) {
  return example_.emplace(name, Value{}).first->second.template emplace<Value>();
}

ExamplePlace::ExamplePlace()
    : id_(feature<std::string>("id")),
      record_(feature<std::int64_t>("record_index")),
      first_segment_(feature<std::int64_t>("first_segment_length")),
      label_(feature<std::int64_t>("next_sentence_label")),
      ids_(feature<Numbers>("long_token_ids")),
      kinds_(feature<Numbers>("piece_kinds")),
      masked_positions_(feature<Numbers>("masked_positions")),
      masked_ids_(feature<Numbers>("masked_input_ids")),
      sentence_lengths_(feature<Numbers>("sentence_lengths")),
      cpc_sentences_(feature<Numbers>("cpc_sentences")) {}

void ExamplePlace::put_into(prepare::ByteWriter& bytes) const {
  bytes.put(id_);
  for (const std::int64_t number : {record_, first_segment_, label_}) bytes.put(number);
  for (const Numbers* numbers :
       {&ids_, &kinds_, &masked_positions_, &masked_ids_, &sentence_lengths_, &cpc_sentences_}) {
    bytes.put(*numbers);
  }
}

void ExamplePlace::take_from(prepare::ByteReader& bytes) {
  bytes.get(id_);
  for (std::int64_t* number : {&record_, &first_segment_, &label_}) bytes.get(*number);
  for (Numbers* numbers : {&ids_, &kinds_, &masked_positions_, &masked_ids_, &sentence_lengths_, &cpc_sentences_}) {
    bytes.get(*numbers);
  }
}

ExampleMaker::ExampleMaker(const PrepareConfig& config, const data::Tokenizer& tokenizer)
    : config_(config), pieces_(tokenizer), rules_(rules_of(config_, pieces_)) {}

void ExampleMaker::make(const Instance& instance, const TokenStore& store, TextIndex& index,
                        ExamplePlace& place) const {
  const bool pair = instance.sentences == 0, cpc = config_.objective == Objective::mlm_cpc;
  Numbers &ids = place.ids_, &kinds = place.kinds_, &sentence_lengths = place.sentence_lengths_;
  ids.assign({pieces_.cls});
  if (pair) {
    add_pair(instance, store, ids);
  } else {
    store.read_pieces(instance.a, ids);
    if (!cpc) ids.push_back(pieces_.sep);
  }
  place.first_segment_ = pair ? instance.a.length + 2 : std::ssize(ids);
  kinds.resize(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) kinds[i] = pieces_.kinds[static_cast<std::size_t>(ids[i])];
  sentence_lengths.clear();
  for (std::int64_t s = 0; cpc && s < instance.sentences; ++s) {
    const std::int64_t begin = index.first_piece(instance.first_sentence + s);
    sentence_lengths.push_back(index.first_piece(instance.first_sentence + s + 1) - begin);
    // A word must not continue from one sentence into the next, which may be hidden; this can happen after a sentence was
    // cut.
    std::int64_t& kind = kinds[static_cast<std::size_t>(begin - instance.a.begin + 1)];
    if (kind == kContinues) kind = kBegins;
  }
  Masks masks;
  if (!config_.dynamic_masking) {
    const auto text = mix_key(static_cast<std::uint64_t>(instance.copy), static_cast<std::uint64_t>(instance.document));
    CounterDraws draws(
        draws_key(seed_for(config_.random_seed, DrawnFor::masks), text, static_cast<std::uint64_t>(instance.number)));
    masks = draw_masks({ids, kinds, sentence_lengths}, rules_, draws);
    // Training draws the masks of examples that have none. Here no group was small enough, which must stay so.
    if (masks.positions.empty() && masks.cpc_sentences.empty()) std::fill(kinds.begin(), kinds.end(), kSpecial);
  }
  place.id_ = fmt::format("{}.{}.{}", instance.copy, instance.document, instance.number);
  place.record_ = instance.document;
  place.label_ = instance.random_next;
  place.masked_positions_ = std::move(masks.positions);
  place.masked_ids_ = std::move(masks.input_ids);
  place.cpc_sentences_ = std::move(masks.cpc_sentences);
}

}  // namespace etc::pretrain
