#include "tasks/wikihop/sample.h"

#include "data/sample/wikihop_sample.h"

namespace etc::wikihop {

namespace {

// What `etc sample` asks for; 0 long tokens: as many as the facts need and a little more.
struct Options : data::WikihopSampleOptions {
  Options() { long_tokens = 0; }
};

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"hops", &Options::hops, "1: one document answers; 2: two together do"},
      {"candidates", &Options::candidates, "choices per record"},
      {"long_tokens", &Options::long_tokens,
       "long input of an example at most; 0: what its facts need and a little more"},
  };
  return kFields;
}

void write(const Json& values, const std::filesystem::path& folder) {
  Options options = read_sample_options(fields(), values);
  if (options.long_tokens == 0) options.long_tokens = options.hops == 2 ? 56 : 48;
  data::write_wikihop_sample(options, folder);
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind{".json", fields(), write};
  return kKind;
}

}  // namespace etc::wikihop
