#include "tasks/nq/sample.h"

#include "data/sample/nq_sample.h"

namespace etc::nq {

namespace {

using Options = data::NqSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"candidates", &Options::candidates, "choices per record"},
      long_tokens_entry<Options>(),
      {"mixed", &Options::mixed, "questions out of 10 of other kinds: two answers, long answer only, none, yes or no"},
  };
  return kFields;
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind = sample_kind_of<fields, data::write_nq_sample>(".jsonl");
  return kKind;
}

}  // namespace etc::nq
