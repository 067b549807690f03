#include "tasks/wikihop/features.h"

#include "data/text/byte_words.h"
#include "tasks/text/special_pieces.h"
#include "tasks/wikihop/linking.h"

namespace etc::wikihop {

namespace {

// Type ids of task-wikihop 2.5; long and global types are counted apart.
enum LongType : std::int64_t { kLongSentence = 1, kLongQuery = 3, kLongCandidate = 4 };
enum GlobalType : std::int64_t { kGlobalSentence = 0, kGlobalQuery = 5, kGlobalCandidate = 6, kGlobalDocument = 7 };
constexpr std::int64_t kNone = -1;

// The two sequences under construction. Long tokens belong to the last global token appended, their paragraph is the
// last document.
class Layout {
 public:
  explicit Layout(Features& features) : f_(features) {}

  void add_global(std::int64_t id, GlobalType type) {
    f_.global_token_ids.push_back(id);
    f_.global_token_type_ids.push_back(type);
    f_.global_paragraph_breakpoints.push_back(0);
    if (type == kGlobalDocument) paragraph_ = last_global();
  }

  void add_long(std::int32_t id, LongType type, std::int64_t link) {
    f_.long_token_ids.push_back(id);
    f_.long_token_type_ids.push_back(type);
    f_.long_sentence_ids.push_back(last_global());
    f_.long_paragraph_ids.push_back(paragraph_);
    f_.long_paragraph_breakpoints.push_back(0);
    f_.l2g_linked_ids.push_back(link);
  }

  // Ends a segment in both sequences. If the segment has no long token, this sets the breakpoint at the end of the
  // previous segment, which is set already.
  void end_segment() {
    if (!f_.long_paragraph_breakpoints.empty()) f_.long_paragraph_breakpoints.back() = 1;
    if (!f_.global_paragraph_breakpoints.empty()) f_.global_paragraph_breakpoints.back() = 1;
  }

 private:
  std::int64_t last_global() const { return static_cast<std::int64_t>(f_.global_token_ids.size()) - 1; }
  Features& f_;
  std::int64_t paragraph_ = kNone;
};

// Converts byte-level pieces to SentencePiece's spelling, in which mentions are searched.
data::Tokens tokens_of(const data::Tokenizer& tokenizer, std::string_view text) {
  if (!text::is_byte_bpe(tokenizer)) return tokenizer.encode(text);
  data::Tokens tokens;
  tokenizer.append_word_ids(text, tokens.ids);
  for (const std::int32_t id : tokens.ids) tokens.pieces.push_back(tokenizer.piece(id));
  tokens.pieces = data::sentencepiece_spelling(tokens.pieces);
  return tokens;
}

std::int64_t token_count(const data::Tokens& tokens) {
  return static_cast<std::int64_t>(tokens.ids.size());
}

// Counts the tokens of every sentence of one document, and keeps the tokens of the first sentences: those that truncation
// to `most_tokens` and `most_sentences` could leave.
class DocumentTokens {
 public:
  DocumentTokens(const data::Tokenizer& tokenizer, std::int64_t most_tokens, std::int64_t most_sentences)
      : tokenizer_(tokenizer), tokens_left_(most_tokens), sentences_left_(most_sentences) {}

  void add(std::string_view sentence) {
    const bool may_stay = tokens_left_ >= 0 && sentences_left_ > 0;
    // Pieces cost ten times as much as ids, so ids are counted first where pieces may not be needed: behind the limits,
    // and for a very long sentence, which hardly fits.
    constexpr std::size_t kLongSentence = 1 << 16;  // bytes
    if (!may_stay || sentence.size() >= kLongSentence) {
      std::vector<std::int32_t> ids;
      tokenizer_.append_word_ids(sentence, ids);
      const std::int64_t count = std::ssize(ids);
      if (!may_stay || count > tokens_left_) {
        counts.push_back(count);
        tokens_left_ = -1;
        return;
      }
    }
    data::Tokens tokens = tokens_of(tokenizer_, sentence);
    counts.push_back(token_count(tokens));
    tokens_left_ -= counts.back();
    --sentences_left_;
    if (tokens_left_ >= 0) beginning.push_back({sentence, std::move(tokens)});
  }

  std::vector<std::int64_t> counts;
  std::vector<Sentence> beginning;

 private:
  const data::Tokenizer& tokenizer_;
  std::int64_t tokens_left_, sentences_left_;  // negative tokens: nothing more is kept
};

}  // namespace

std::int64_t TokenizedRecord::candidate_tokens() const {
  std::int64_t count = 0;
  for (const data::Tokens& candidate : candidates) count += token_count(candidate);
  return count;
}

TokenizedRecord tokenize(const Record& record, const data::Tokenizer& tokenizer, const data::SentenceSplitter& splitter,
                         const PrepareConfig& config) {
  TokenizedRecord result;
  for (const std::string& candidate : record.candidates) result.candidates.push_back(tokens_of(tokenizer, candidate));
  result.query = tokens_of(tokenizer, record.query);
  // With more documents than global tokens the record is rejected, so no tokens need to be kept.
  const bool fits = std::ssize(record.supports) <= config.global_seq_len;
  const std::int64_t budget = config.long_seq_len - result.query_tokens() - result.candidate_tokens();
  result.sentence_tokens.reserve(record.supports.size());
  for (const std::string_view document : record.supports) {
    DocumentTokens tokens(tokenizer, fits ? budget : -1, config.max_num_sentences);
    for (const auto [begin, end] : splitter.split(document)) tokens.add(document.substr(begin, end - begin));
    result.sentence_tokens.push_back(std::move(tokens.counts));
    if (fits) result.beginnings.push_back(std::move(tokens.beginning));
  }
  return result;
}

Truncation truncate(const TokenizedRecord& tokens, const PrepareConfig& config) {
  return truncate(tokens.sentence_tokens, config.max_num_sentences,
                  config.long_seq_len - tokens.query_tokens() - tokens.candidate_tokens());
}

Features lay_out(const Record& record, const TokenizedRecord& tokens, const std::vector<std::int64_t>& kept,
                 const PrepareConfig& config, bool sentencepiece) {
  Features features;
  features.mentioned.assign(record.candidates.size(), false);
  Layout layout(features);
  const SpecialIds& special = config.special_ids;
  for (std::size_t c = 0; c < tokens.candidates.size(); ++c) {
    layout.add_global(special.candidate, kGlobalCandidate);
    for (const std::int32_t id : tokens.candidates[c].ids) {
      layout.add_long(id, kLongCandidate, static_cast<std::int64_t>(c));
    }
    layout.end_segment();
  }
  for (const std::int32_t id : tokens.query.ids) {
    layout.add_global(special.question, kGlobalQuery);
    layout.add_long(id, kLongQuery, kNone);
  }
  layout.end_segment();
  const MentionFinder mentions(record.candidates, tokens.candidates, config.parity, sentencepiece);
  std::vector<std::int64_t> links;
  for (std::size_t d = 0; d < tokens.beginnings.size(); ++d) {
    layout.add_global(special.paragraph, kGlobalDocument);
    for (std::int64_t s = 0; s < kept[d]; ++s) {
      const Sentence& sentence = tokens.beginnings[d][s];
      layout.add_global(special.sentence, kGlobalSentence);
      links.assign(sentence.tokens.ids.size(), kNone);
      mentions.link(sentence.text, sentence.tokens, links, features.mentioned);
      // A byte-level piece inside a character belongs to the piece in which that character begins.
      for (std::size_t i = 1; i < links.size(); ++i) {
        if (sentence.tokens.pieces[i].empty()) links[i] = links[i - 1];
      }
      for (std::size_t i = 0; i < links.size(); ++i) layout.add_long(sentence.tokens.ids[i], kLongSentence, links[i]);
    }
    layout.end_segment();
  }
  return features;
}

}  // namespace etc::wikihop
