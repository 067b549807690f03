#include "tasks/wikihop/sample.h"

#include "data/sample/wikihop_sample.h"

namespace etc::wikihop {

namespace {

using Options = data::WikihopSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      hops_entry<Options>(),
      {"candidates", &Options::candidates, "choices per record"},
      long_tokens_entry<Options>(kFittingLongTokens),
  };
  return kFields;
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind = sample_kind_of<fields, data::write_wikihop_sample>(".json");
  return kKind;
}

}  // namespace etc::wikihop
