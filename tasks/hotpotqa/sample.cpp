#include "tasks/hotpotqa/sample.h"

#include "data/sample/hotpotqa_sample.h"

namespace etc::hotpotqa {

namespace {

using Options = data::HotpotqaSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      hops_entry<Options>(),
      {"subjects", &Options::subjects, "subjects per record that could be meant"},
      long_tokens_entry<Options>(kFittingLongTokens),
      {"yes_no", &Options::yes_no, "questions out of 10 that are answered by yes or no"},
  };
  return kFields;
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind = sample_kind_of<fields, data::write_hotpotqa_sample>(".json");
  return kKind;
}

}  // namespace etc::hotpotqa
