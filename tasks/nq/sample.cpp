#include "tasks/nq/sample.h"

#include "data/sample/nq_sample.h"

namespace etc::nq {

const SampleKind& sample_kind() {
  static const SampleKind kKind{
      ".jsonl",
      {records_key(),
       seed_key(),
       {"candidates", 4, "choices per record"},
       {"long_tokens", 96, "long input of an example at most"},
       {"mixed", 0, "of 10 questions so many are of other kinds: two answers, long only, none, yes or no"}},
      [](const SampleValues& v, const std::filesystem::path& folder) {
        data::write_nq_sample({v.at("records"), seed_of(v), v.at("candidates"), v.at("long_tokens"), v.at("mixed")},
                              folder);
      }};
  return kKind;
}

}  // namespace etc::nq
