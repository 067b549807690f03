#include "tasks/glue/sample.h"

#include "data/sample/glue_sample.h"

namespace etc::glue {

namespace {

using Options = data::GlueSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"clauses", &Options::clauses, "most clauses of a sentence"},
  };
  return kFields;
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind = sample_kind_of<fields, data::write_glue_sample>(".tsv");
  return kKind;
}

}  // namespace etc::glue
