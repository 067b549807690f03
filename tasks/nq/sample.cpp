#include "tasks/nq/sample.h"

#include "data/sample/nq_sample.h"

namespace etc::nq {

namespace {

// What `etc sample` asks for.
using Options = data::NqSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"candidates", &Options::candidates, "choices per record"},
      {"long_tokens", &Options::long_tokens, "long input of an example at most"},
      {"mixed", &Options::mixed, "of 10 questions so many are of other kinds: two answers, long only, none, yes or no"},
  };
  return kFields;
}

void write(const Json& values, const std::filesystem::path& folder) {
  const Options options = read_sample_options(fields(), values);
  data::write_nq_sample(options, folder);
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind{".jsonl", fields(), write};
  return kKind;
}

}  // namespace etc::nq
