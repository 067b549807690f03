#include "tasks/openkp/sample.h"

#include "data/sample/openkp_sample.h"

namespace etc::openkp {

namespace {

// What `etc sample` asks for.
using Options = data::OpenkpSampleOptions;

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"topics", &Options::topics, "topics per page that could be meant"},
      {"long_tokens", &Options::long_tokens, "long input of an example at most"},
  };
  return kFields;
}

void write(const Json& values, const std::filesystem::path& folder) {
  const Options options = read_sample_options(fields(), values);
  data::write_openkp_sample(options, folder);
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind{".jsonl", fields(), write};
  return kKind;
}

}  // namespace etc::openkp
