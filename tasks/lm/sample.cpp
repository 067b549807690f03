#include "tasks/lm/sample.h"

#include "data/sample/lm_sample.h"

namespace etc::lm {

namespace {

using Options = data::LmSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"distance", &Options::distance, "characters between a letter and the question after it, at least"},
      {"letters", &Options::letters, "letters to choose from"},
  };
  return kFields;
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind =
      sample_kind_of<fields, data::write_lm_sample>(std::vector<std::string>{"train.txt", "dev.txt", "vocab.chars"});
  return kKind;
}

}  // namespace etc::lm
