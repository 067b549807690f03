#include "data/text/punkt.h"

#include <utility>

#include "data/text/punkt_words.h"
#include "data/text/unicode.h"

namespace etc::data {

namespace {

using punkt::is_closer;
using punkt::is_end;
using punkt::Mark;

// Steps 3 and 4 for the words of one context.
class Context {
 public:
  Context(const PunktTables& tables, const std::vector<std::string_view>& words) : tables_(tables), words_(words) {}

  // Step 5: a sentence ends here iff any word but the last is marked as a break.
  bool holds_break() const {
    for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
      if (is_break(words_[i], words_[i + 1])) return true;
    }
    return false;
  }

 private:
  enum class Starter { yes, no, unknown };  // does the next word look like the first of a sentence?

  int context_of(const std::string& next_type) const {
    const auto found = tables_.contexts.find(next_type);
    return found == tables_.contexts.end() ? 0 : found->second;
  }

  // ortho(n) of step 4.
  Starter looks_like_start(std::string_view next, const std::string& next_type) const {
    constexpr std::string_view kNeverFirst = ";:,.!?";
    if (next.size() == 1 && kNeverFirst.find(next[0]) != std::string_view::npos) return Starter::no;
    const int bits = context_of(next_type);
    const char32_t first = punkt::first_character(next);
    if (is_upper(first) && (bits & ortho::kAnyLower) && !(bits & ortho::kMiddleUpper)) return Starter::yes;
    if (is_lower(first) && ((bits & ortho::kAnyUpper) || !(bits & ortho::kInitialLower))) return Starter::no;
    return Starter::unknown;
  }

  // The mark of a word after both passes: step 4 revises what step 3 said of a word that ends in a period.
  bool is_break(std::string_view word, std::string_view next) const {
    const Mark mark = punkt::first_pass(word, tables_.abbreviations);
    const bool marked = mark == Mark::sentence_end;
    if (!word.ends_with('.')) return marked;
    const std::string word_type = punkt::without_period(punkt::type_of(word));
    const std::string next_type = punkt::first_pass(next, tables_.abbreviations) == Mark::sentence_end
                                      ? punkt::without_period(punkt::type_of(next))
                                      : punkt::type_of(next);
    if (tables_.collocations.contains(word_type + '\t' + next_type)) return false;

    const bool initial = punkt::is_initial(word);
    if ((mark == Mark::abbreviation || mark == Mark::ellipsis) && !initial) {
      if (looks_like_start(next, next_type) == Starter::yes) return true;
      if (is_upper(punkt::first_character(next)) && tables_.starters.contains(next_type)) return true;
    }
    if (initial || word_type == punkt::kNumberType) {
      const Starter starter = looks_like_start(next, next_type);
      if (starter == Starter::no) return false;
      if (starter == Starter::unknown && initial && is_upper(punkt::first_character(next)) &&
          !(context_of(next_type) & ortho::kAnyLower)) {
        return false;
      }
    }
    return marked;
  }

  const PunktTables& tables_;
  const std::vector<std::string_view>& words_;
};

class Punkt : public SentenceSplitter {
 public:
  explicit Punkt(PunktTables tables) : tables_(std::move(tables)) {}

  std::vector<ByteSpan> split(std::string_view utf8) const override { return reattach(utf8, cut(utf8)); }
  std::string name() const override { return "punkt"; }
  std::string tables_sha256() const override { return tables_.sha256; }

 private:
  // Steps 1 and 5: cuts the text at the candidates that are boundaries; the last piece may be empty.
  std::vector<ByteSpan> cut(std::string_view text) const {
    std::vector<ByteSpan> pieces;
    std::vector<std::string_view> words;
    std::size_t piece_begin = 0;
    for (std::size_t at = punkt::space_run(text, 0); at < text.size();) {
      const std::size_t run_begin = at;
      const std::size_t run_end = at + punkt::word_run(text, at);
      const std::size_t next_begin = run_end + punkt::space_run(text, run_end);
      at = next_begin;

      // The longest part of the run that ends in . ? or ! before (b) another word or (a) a barrier.
      std::size_t end = run_end;
      std::size_t context_end = 0;
      std::size_t rest_begin = next_begin;  // where the next sentence would begin
      if (is_end(text[run_end - 1]) && next_begin < text.size()) {
        context_end = next_begin + punkt::word_run(text, next_begin);
      } else {
        for (end = run_end - 1; end > run_begin; --end) {
          if (is_end(text[end - 1]) && punkt::is_barrier(text[end])) break;
        }
        if (end == run_begin) continue;
        context_end = end + 1;
        rest_begin = end;
      }
      words.clear();
      punkt::split_words(text.substr(run_begin, context_end - run_begin), words);
      if (!Context(tables_, words).holds_break()) continue;
      pieces.push_back({static_cast<std::int64_t>(piece_begin), static_cast<std::int64_t>(end)});
      piece_begin = rest_begin;
    }
    const std::string_view rest = text.substr(piece_begin);
    // Leading white space belongs to the first piece, but strip() would remove it as well.
    const std::string_view kept = strip(rest);
    const std::size_t end = kept.empty() ? piece_begin : static_cast<std::size_t>(kept.end() - text.begin());
    pieces.push_back({static_cast<std::int64_t>(piece_begin), static_cast<std::int64_t>(end)});
    return pieces;
  }

  // Step 6: moves closing quotes and brackets at a piece's beginning to the piece before; empty sentences are dropped.
  static std::vector<ByteSpan> reattach(std::string_view text, const std::vector<ByteSpan>& pieces) {
    std::vector<ByteSpan> sentences;
    std::int64_t moved = 0;  // bytes at the beginning of this piece that the one before took, or white space after them
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      ByteSpan sentence{pieces[i].begin + moved, pieces[i].end};
      moved = 0;
      if (i + 1 < pieces.size()) {
        const ByteSpan next = pieces[i + 1];
        const auto begin = static_cast<std::size_t>(next.begin);
        const std::string_view next_text = text.substr(begin, static_cast<std::size_t>(next.end - next.begin));
        if (const std::size_t closers = closers_to_move(next_text); closers > 0) {
          sentence.end = next.begin + static_cast<std::int64_t>(closers);
          moved = static_cast<std::int64_t>(closers + punkt::space_run(next_text, closers));
        }
      }
      if (sentence.begin < sentence.end) sentences.push_back(sentence);
    }
    return sentences;
  }

  // Number of closing characters that start the text, if white space, "--" or the text's end follows them; else 0.
  static std::size_t closers_to_move(std::string_view text) {
    for (std::size_t count = 1; count <= text.size() && is_closer(text[count - 1]); ++count) {
      if (count == text.size() || punkt::space_length(text, count) > 0 || text.substr(count).starts_with("--")) {
        return count;
      }
    }
    return 0;
  }

  PunktTables tables_;
};

}  // namespace

std::unique_ptr<SentenceSplitter> make_punkt(PunktTables tables) {
  return std::make_unique<Punkt>(std::move(tables));
}

}  // namespace etc::data
