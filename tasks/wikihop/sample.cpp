#include "tasks/wikihop/sample.h"

#include "data/sample/wikihop_sample.h"

namespace etc::wikihop {

const SampleKind& sample_kind() {
  static const SampleKind kKind{
      ".json",
      {records_key(),
       seed_key(),
       {"hops", 1, "1: one document answers; 2: two together do"},
       {"candidates", 4, "choices per record"},
       {"long_tokens", 0, "long input of an example at most; 0: what its facts need and a little more"}},
      [](const SampleValues& v, const std::filesystem::path& folder) {
        const std::int64_t tokens = v.at("long_tokens") != 0 ? v.at("long_tokens") : v.at("hops") == 2 ? 56 : 48;
        data::write_wikihop_sample({v.at("records"), seed_of(v), v.at("hops"), v.at("candidates"), tokens}, folder);
      }};
  return kKind;
}

}  // namespace etc::wikihop
