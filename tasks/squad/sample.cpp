#include "tasks/squad/sample.h"

#include "data/sample/squad_sample.h"

namespace etc::squad {

namespace {

using Options = data::SquadSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"subjects", &Options::subjects, "subjects a text is about"},
      {"impossible", &Options::impossible, "questions out of 10 without an answer"},
  };
  return kFields;
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind = sample_kind_of<fields, data::write_squad_sample>(".json");
  return kKind;
}

}  // namespace etc::squad
