#include "tasks/pretrain/instances.h"

namespace etc::pretrain {

namespace {

constexpr int kDocumentDraws = 10;
constexpr std::int64_t kSpecialPieces = 3;  // [CLS], [SEP], [SEP]

PieceRange pieces_of(TextIndex& text, std::int64_t first_sentence, std::int64_t end_sentence) {
  const std::int64_t begin = text.first_piece(first_sentence);
  return {begin, text.first_piece(end_sentence) - begin};
}

// Cuts pieces off the longer segment (B if they are equally long) until both fit.
void truncate(PieceRange& a, PieceRange& b, std::int64_t budget, Draws& draws) {
  while (a.length + b.length > budget) {
    PieceRange& longer = a.length > b.length ? a : b;
    if (draws.uniform() < 0.5) ++longer.begin;
    --longer.length;
  }
}

// Makes the pairs of one document.
class PairWalk {
 public:
  PairWalk(TextIndex& text, std::int64_t document, const PairRules& rules, Draws& draws)
      : text_(text), draws_(draws), document_(document), budget_(rules.max_seq_length - kSpecialPieces) {
    target_ = budget_;
    if (draws_.uniform() < rules.short_seq_prob) target_ = draws_.between(2, budget_);
  }

  void walk(const TakeInstance& take) {
    const TextIndex::Document own = text_.document(document_);
    const std::int64_t end = own.first_sentence + own.sentences;
    std::int64_t begin = own.first_sentence;  // first sentence of the chunk
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + 1 < end && pieces_of(text_, begin, i + 1).length < target_) continue;
      Instance instance;
      // If B is random, the chunk's unused sentences are put back.
      i = close_chunk(begin, i + 1, instance) - 1;
      truncate(instance.a, instance.b, budget_, draws_);
      instance.document = document_;
      instance.number = instances_++;
      take(instance);
      begin = i + 1;
    }
  }

 private:
  // Makes the segments from the sentences [begin, end); returns where the next chunk begins.
  std::int64_t close_chunk(std::int64_t begin, std::int64_t end, Instance& instance) {
    const std::int64_t sentences = end - begin;
    const std::int64_t middle = begin + (sentences >= 2 ? draws_.between(1, sentences - 1) : 1);
    instance.a = pieces_of(text_, begin, middle);
    instance.random_next = sentences == 1 || draws_.uniform() < 0.5 ? 1 : 0;
    if (instance.random_next == 0) {
      instance.b = pieces_of(text_, middle, end);
      return end;
    }
    instance.b = random_segment(target_ - instance.a.length);
    return middle;
  }

  // Takes sentences from a random one of another document on, until the wanted length is reached.
  PieceRange random_segment(std::int64_t wanted) {
    std::int64_t number = document_;
    for (int draw = 0; draw < kDocumentDraws && number == document_; ++draw) {
      number = draws_.between(0, text_.documents() - 1);
    }
    const TextIndex::Document other = text_.document(number);
    const std::int64_t start = other.first_sentence + draws_.between(0, other.sentences - 1);
    const std::int64_t last = other.first_sentence + other.sentences;
    std::int64_t end = start + 1;
    while (end < last && pieces_of(text_, start, end).length < wanted) ++end;
    return pieces_of(text_, start, end);
  }

  TextIndex& text_;
  Draws& draws_;
  std::int64_t document_, budget_, target_ = 0, instances_ = 0;
};

}  // namespace

void pair_instances(TextIndex& text, std::int64_t document, const PairRules& rules, Draws& draws,
                    const TakeInstance& take) {
  PairWalk(text, document, rules, draws).walk(take);
}

std::int64_t run_instances(TextIndex& text, std::int64_t document, const RunRules& rules, const TakeInstance& take) {
  const TextIndex::Document own = text.document(document);
  const std::int64_t last = own.first_sentence + own.sentences;
  std::int64_t number = 0, left_out = 0;
  for (std::int64_t begin = own.first_sentence; begin < last;) {
    std::int64_t end = begin + 1;
    while (end < last && end - begin < rules.max_sentences &&
           pieces_of(text, begin, end + 1).length <= rules.max_pieces) {
      ++end;
    }
    if (end - begin < rules.least_sentences) {
      ++left_out;
    } else {
      Instance instance;
      instance.document = document;
      instance.number = number++;
      instance.a = pieces_of(text, begin, end);
      instance.first_sentence = begin;
      instance.sentences = end - begin;
      take(instance);
    }
    begin = end;
  }
  return left_out;
}

}  // namespace etc::pretrain
