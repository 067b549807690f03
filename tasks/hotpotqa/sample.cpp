#include "tasks/hotpotqa/sample.h"

#include "data/sample/hotpotqa_sample.h"

namespace etc::hotpotqa {

namespace {

// What `etc sample` asks for; 0 long tokens: as many as the facts need and a little more.
struct Options : data::HotpotqaSampleOptions {
  Options() { long_tokens = 0; }
};

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      records_entry<Options>(),
      seed_entry<Options>(),
      {"hops", &Options::hops, "1: one document answers; 2: two together do"},
      {"subjects", &Options::subjects, "subjects per record that could be meant"},
      {"long_tokens", &Options::long_tokens,
       "long input of an example at most; 0: what its facts need and a little more"},
      {"yes_no", &Options::yes_no, "of 10 questions so many are answered by yes or no"},
  };
  return kFields;
}

void write(const Json& values, const std::filesystem::path& folder) {
  Options options = read_sample_options(fields(), values);
  if (options.long_tokens == 0) options.long_tokens = options.hops == 2 ? 72 : 40;
  data::write_hotpotqa_sample(options, folder);
}

}  // namespace

const SampleKind& sample_kind() {
  static const SampleKind kKind{".json", fields(), write};
  return kKind;
}

}  // namespace etc::hotpotqa
