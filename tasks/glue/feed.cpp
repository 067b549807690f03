#include "tasks/glue/feed.h"

#include "etc_core/base/error.h"
#include "tasks/feed/batch.h"
#include "tasks/feed/features.h"

namespace etc::glue {

using feed::numbers;

void check_example(const data::Example& example, const EncoderConfig& model, DataSet set, const std::string& where) {
  const feed::Examination examination(example, where);
  const std::int64_t length = examination.length("token_ids"), prepared = feed::number(example, "data_set");
  examination.number_in_range("data_set", 0, std::ssize(data_sets()));
  if (prepared != static_cast<std::int64_t>(set)) {
    fail("feed", "{}: the rows are of data set {}, the model's task.data_set is {} (both are set by --data-set)", where,
         data_sets()[static_cast<std::size_t>(prepared)].name, info_of(set).name);
  }
  examination.same_length("segment_ids", length);
  examination.token_ids("token_ids", model.vocab_size);
  examination.in_range("segment_ids", 0, 2);
  examination.number_in_range("label", -1, std::ssize(info_of(set).labels));
  examination.number_in_range("scored", 0, 2);
}

EncoderInput feed(Examples examples, const EncoderConfig& model, DataSet set, const feed::SequenceGlobals& globals,
                  const std::string& where) {
  return feed::batch_input(examples, model, true, [&](EncoderInput& input, const data::Example& example) {
    check_example(example, model, set, where);
    return feed::add_sequence(input, numbers(example, "token_ids"), numbers(example, "segment_ids"), globals);
  });
}

}  // namespace etc::glue
