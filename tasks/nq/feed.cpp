#include "tasks/nq/feed.h"

#include <limits>

#include "tasks/feed/batch.h"
#include "tasks/feed/features.h"

namespace etc::nq {

using feed::numbers;

void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where) {
  const feed::Examination examination(example, where);
  const std::int64_t length = examination.length("token_ids");
  examination.length("global_token_ids");
  examination.same_length("sentence_ids", length);
  examination.same_length("token_pos", length);
  examination.token_ids("token_ids", model.vocab_size);
  examination.token_ids("global_token_ids", model.vocab_size);
  examination.in_range("sentence_ids", 0, length);  // there may be more blocks than global tokens
  examination.in_range("token_pos", -1, std::numeric_limits<std::int64_t>::max());
  for (const char* label : {"sa_start", "sa_end", "la_start", "la_end"}) {
    examination.number_in_range(label, 0, length);
  }
  examination.number_in_range("answer_type", -1, 5);
}

EncoderInput feed(Examples examples, const EncoderConfig& model, bool global_attention, const std::string& where) {
  return feed::batch_input(examples, model, global_attention, [&](EncoderInput& input, const data::Example& example) {
    check_example(example, model, where);
    const feed::Numbers &ids = numbers(example, "token_ids"), &global_ids = numbers(example, "global_token_ids");
    feed::append(input.token_ids, ids);
    feed::append(input.global_token_ids, global_ids);
    return sparse::structure_from_example_ids(std::vector<std::int32_t>(ids.size(), 1),
                                              std::vector<std::int32_t>(global_ids.size(), 1),
                                              feed::narrowed(numbers(example, "sentence_ids")));
  });
}

}  // namespace etc::nq
