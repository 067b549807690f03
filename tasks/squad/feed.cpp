#include "tasks/squad/feed.h"

#include <algorithm>
#include <limits>

#include "tasks/feed/batch.h"
#include "tasks/feed/features.h"

namespace etc::squad {

using feed::numbers;

void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where) {
  const feed::Examination examination(example, where);
  const std::int64_t length = examination.length("token_ids");
  for (const char* name : {"segment_ids", "token_words", "max_context"}) examination.same_length(name, length);
  examination.token_ids("token_ids", model.vocab_size);
  examination.in_range("segment_ids", 0, 2);
  examination.in_range("max_context", 0, 2);
  const std::int64_t first_word = feed::number(example, "first_word"),
                     words = std::ssize(feed::texts(example, "words"));
  examination.number_in_range("first_word", 0, std::numeric_limits<std::int32_t>::max());
  for (const std::int64_t word : numbers(example, "token_words")) {
    if (word == -1 || (word >= first_word && word < first_word + words)) continue;
    examination.reject("token_words", "expected -1 or a word from {} to {}, got {}", first_word, first_word + words - 1,
                       word);
  }
  for (const char* target : {"start_position", "end_position"}) examination.number_in_range(target, -1, length);
}

EncoderInput feed(Examples examples, const EncoderConfig& model, const feed::SequenceGlobals& globals,
                  const std::string& where) {
  return feed::batch_input(examples, model, true, [&](EncoderInput& input, const data::Example& example) {
    check_example(example, model, where);
    const feed::Numbers& segments = numbers(example, "segment_ids");
    feed::SequenceGlobals own = globals;
    own.copied = std::find(segments.begin(), segments.end(), 1) - segments.begin();
    return feed::add_sequence(input, numbers(example, "token_ids"), segments, own);
  });
}

}  // namespace etc::squad
