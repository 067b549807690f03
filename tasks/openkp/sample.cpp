#include "tasks/openkp/sample.h"

#include "data/sample/openkp_sample.h"

namespace etc::openkp {

namespace {

using Options = data::OpenkpSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"topics", &Options::topics, "topics per page that could be meant"},
      long_tokens_entry<Options>(),
  };
  return kFields;
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind = sample_kind_of<fields, data::write_openkp_sample>(".jsonl");
  return kKind;
}

}  // namespace etc::openkp
