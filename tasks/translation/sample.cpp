#include "tasks/translation/sample.h"

#include "data/sample/translation_sample.h"

namespace etc::translation {

namespace {

using Options = data::TranslationSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"nouns", &Options::nouns, "different nouns; half as many adjectives and verbs"},
      {"clauses", &Options::clauses, "most clauses of a sentence"},
  };
  return kFields;
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind = sample_kind_of<fields, data::write_translation_sample>(
      std::vector<std::string>{"train.source", "train.target", "dev.source", "dev.target", "vocab.words"});
  return kKind;
}

}  // namespace etc::translation
