#include "tasks/hotpotqa/sample.h"

#include "data/sample/hotpotqa_sample.h"

namespace etc::hotpotqa {

const SampleKind& sample_kind() {
  static const SampleKind kKind{
      ".json",
      {records_key(),
       seed_key(),
       {"hops", 1, "1: one document answers; 2: two together do"},
       {"subjects", 4, "subjects per record that could be meant"},
       {"long_tokens", 0, "long input of an example at most; 0: what its facts need and a little more"},
       {"yes_no", 0, "of 10 questions so many are answered by yes or no"}},
      [](const SampleValues& v, const std::filesystem::path& folder) {
        const std::int64_t tokens = v.at("long_tokens") != 0 ? v.at("long_tokens") : v.at("hops") == 2 ? 72 : 40;
        data::write_hotpotqa_sample(
            {v.at("records"), seed_of(v), v.at("hops"), v.at("subjects"), tokens, v.at("yes_no")}, folder);
      }};
  return kKind;
}

}  // namespace etc::hotpotqa
