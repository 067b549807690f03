#include "tasks/pretrain/sample.h"

#include "data/sample/pretrain_sample.h"

namespace etc::pretrain {

namespace {

using Options = data::PretrainSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"sentences", &Options::sentences, "sentences of a document"},
      {"people", &Options::people, "people of a document, each with facts said at its beginning and end"},
  };
  return kFields;
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind = sample_kind_of<fields, data::write_pretrain_sample>(".txt");
  return kKind;
}

}  // namespace etc::pretrain
