#include "tasks/hotpotqa/features.h"

#include <algorithm>

#include "data/text/unicode.h"
#include "tasks/text/special_pieces.h"

namespace etc::hotpotqa {

namespace {

// The two sequences under construction.
class Layout {
 public:
  Layout(const Record& record, const data::Tokenizer& tokenizer, const PrepareConfig& config)
      : record_(record),
        tokenizer_(tokenizer),
        config_(config),
        facts_(record.labelled() ? record.facts_by_title() : std::map<std::string, std::set<std::int64_t>>()),
        answer_(record.labelled() ? *record.answer : ""),
        answer_ids_(text::OffsetText(answer_, tokenizer).ids()),
        separator_(config.parity == Parity::reference ? text::LeadingSeparator::last_unigram
                                                      : text::LeadingSeparator::first_unigram) {}

  Features build() {
    add_global(config_.special_ids.cls, "");
    add_long(config_.special_ids.cls, kSentenceType, kNone, kNone);
    end_segment();
    add_question();
    for (std::size_t p = 0; p < record_.context.size(); ++p) add_paragraph(static_cast<std::int64_t>(p));
    std::stable_sort(f_.answer_spans.begin(), f_.answer_spans.end(),
                     [](const AnswerSpan& a, const AnswerSpan& b) { return a.tokens.last < b.tokens.last; });
    return std::move(f_);
  }

 private:
  std::int64_t long_size() const { return std::ssize(f_.long_token_ids); }
  std::int64_t global_size() const { return std::ssize(f_.global_token_ids); }

  bool fits(std::int64_t long_tokens) {
    if (long_size() + long_tokens > config_.long_seq_len) {
      ++f_.skipped_for_long;
      return false;
    }
    if (global_size() >= config_.global_seq_len) {
      ++f_.skipped_for_global;
      return false;
    }
    return true;
  }

  void add_global(std::int32_t id, const std::string& text, std::int64_t fact = 0, std::int64_t paragraph = kNone) {
    f_.global_token_ids.push_back(id);
    f_.global_token_type_ids.push_back(0);
    f_.global_paragraph_breakpoints.push_back(0);
    f_.global_paragraph_ids.push_back(paragraph);
    f_.global_sentence_ids.push_back(kNone);
    f_.global_true_sentence_ids.push_back(kNone);
    f_.supporting_facts.push_back(fact);
    f_.global_text.push_back(text);
  }

  // Adds a long token that belongs to the last global token, or to none.
  void add_long(std::int32_t id, LongType type, std::int64_t sentence, std::int64_t unigram) {
    f_.long_token_ids.push_back(id);
    f_.long_token_type_ids.push_back(type);
    f_.long_sentence_ids.push_back(sentence);
    f_.long_paragraph_ids.push_back(paragraph_);
    f_.long_paragraph_breakpoints.push_back(0);
    if (has_unigrams_) f_.long_tokens_to_unigrams.push_back(unigram);
  }

  // If the segment is empty, this sets the breakpoint at the end of the previous segment, which is set already.
  void end_segment() {
    f_.long_paragraph_breakpoints.back() = 1;
    f_.global_paragraph_breakpoints.back() = 1;
  }

  void add_question() {
    const text::OffsetText question(record_.question, tokenizer_);
    f_.question_tokens = std::ssize(question.ids());
    for (const std::int32_t id : question.ids()) {
      if (!fits(1)) continue;
      add_global(config_.special_ids.question, "");
      add_long(id, kQuestionType, global_size() - 1, kNone);
    }
    end_segment();
  }

  void add_paragraph(std::int64_t number) {
    const Paragraph& paragraph = record_.context[static_cast<std::size_t>(number)];
    const auto facts = facts_.find(paragraph.title);
    const bool supporting = facts != facts_.end();
    if (global_size() < config_.global_seq_len) {
      add_global(config_.special_ids.paragraph, "", supporting ? 1 : 0, number);
      paragraph_ = global_size() - 1;
    }
    add_unit(paragraph.title, kTitleType, supporting, number);
    std::int64_t added = 0;
    for (std::size_t s = 0; s < paragraph.sentences.size(); ++s) {
      const auto index = static_cast<std::int64_t>(s);
      const bool fact = supporting && facts->second.contains(index);
      if (!add_unit(paragraph.sentences[s], kSentenceType, fact, number)) {
        if (fact) ++f_.facts_cut_away;
        continue;
      }
      // The reference counts the sentences it has added, not those of the paragraph (quirk H1).
      const std::int64_t counted = config_.parity == Parity::reference ? added : index;
      f_.global_sentence_ids.back() = counted;
      f_.global_true_sentence_ids.back() = index;
      // It looks up the text of an answer by that number, too.
      f_.global_text.back() = paragraph.sentences[static_cast<std::size_t>(counted)];
      ++added;
    }
    end_segment();
    paragraph_ = kNone;
  }

  // Adds a title or sentence, and searches it for the answer if it is a supporting fact; false when it was skipped.
  bool add_unit(const std::string& text, LongType type, bool fact, std::int64_t paragraph) {
    const text::OffsetText tokens(text, tokenizer_);
    const auto& ids = tokens.ids();
    const auto& unigrams = tokens.token_unigrams();
    const std::int64_t begin = long_size();
    const bool added = fits(std::ssize(ids));
    if (fact) {
      for (const text::Occurrence& found : tokens.find(answer_, answer_ids_, separator_)) {
        f_.answer_spans.push_back({{begin + found.tokens.first, begin + found.tokens.last}, !added, found.inside_word});
      }
    }
    if (!added) return false;
    add_global(config_.special_ids.sentence, text, fact ? 1 : 0, paragraph);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      add_long(ids[i], type, global_size() - 1, unigrams.empty() ? kNone : unigrams[i]);
    }
    return true;
  }

  const Record& record_;
  const data::Tokenizer& tokenizer_;
  const PrepareConfig& config_;
  const std::map<std::string, std::set<std::int64_t>> facts_;
  const std::string answer_;
  const std::vector<std::int32_t> answer_ids_;
  const text::LeadingSeparator separator_;
  const bool has_unigrams_ = !text::is_sentencepiece(tokenizer_);
  std::int64_t paragraph_ = kNone;  // global token of the current paragraph
  Features f_;
};

bool inverted(const AnswerSpan& span) {
  return span.tokens.last < span.tokens.first;
}

bool begins_with_separator(std::string_view text) {
  const auto words = text::unigrams(text);
  return !text.empty() && (words.empty() || words[0].data() != text.data());
}

}  // namespace

Features lay_out(const Record& record, const data::Tokenizer& tokenizer, const PrepareConfig& config) {
  return Layout(record, tokenizer, config).build();
}

Label choose_label(const Record& record, const Features& features, const PrepareConfig& config) {
  const bool reference = config.parity == Parity::reference;
  Label label;
  const auto& facts = features.supporting_facts;
  if (std::find(facts.begin(), facts.end(), 1) == facts.end()) {
    label.fault = Label::Fault::no_sf_label;
    return label;
  }
  const bool yes_or_no = record.answer == "yes" || record.answer == "no";
  if (yes_or_no) label.type = record.answer == "yes" ? AnswerType::yes : AnswerType::no;
  const auto& spans = features.answer_spans;
  label.inverted_spans = std::count_if(spans.begin(), spans.end(), inverted);
  // The reference takes the first span without checking it: in skipped text (H2), mapped to the text's end (H15), or
  // letters of a word for yes and no (H3). Spans without a token (H14) are left out in any case.
  if (reference && !yes_or_no && !spans.empty() && inverted(spans[0]) && begins_with_separator(*record.answer)) {
    label.fault = Label::Fault::answer_reversed;
    label.span = spans[0].tokens;
    return label;
  }
  const auto usable = [&](const AnswerSpan& s) { return !inverted(s) && (reference || !s.skipped); };
  const auto chosen = std::find_if(spans.begin(), spans.end(), usable);
  if (chosen != spans.end() && (reference || !yes_or_no)) {
    label.source = *chosen;
    label.span = chosen->tokens;
  }
  if (yes_or_no) return label;
  if (data::strip(*record.answer).empty()) {
    label.fault = Label::Fault::answer_empty;
  } else if (!label.source) {
    label.fault = spans.empty()                               ? Label::Fault::answer_not_found
                  : label.inverted_spans == std::ssize(spans) ? Label::Fault::answer_without_tokens
                                                              : Label::Fault::answer_in_cut_text;
  } else if (label.span.last >= config.long_seq_len) {
    label.fault = Label::Fault::answer_beyond_limit;
  }
  return label;
}

std::vector<std::int64_t> bio_labels(const std::vector<AnswerSpan>& spans, std::int64_t length) {
  constexpr std::int64_t kBegin = 0, kInside = 1, kOutside = 2;
  std::vector<std::int64_t> labels(static_cast<std::size_t>(length), kOutside);
  for (const AnswerSpan& span : spans) {
    if (span.tokens.last >= length) break;
    if (inverted(span)) continue;
    const auto begin = labels.begin() + span.tokens.first;
    *begin = kBegin;
    std::fill(begin + 1, labels.begin() + span.tokens.last + 1, kInside);
  }
  return labels;
}

}  // namespace etc::hotpotqa
