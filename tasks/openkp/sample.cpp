#include "tasks/openkp/sample.h"

#include "data/sample/openkp_sample.h"

namespace etc::openkp {

const SampleKind& sample_kind() {
  static const SampleKind kKind{
      ".jsonl",
      {records_key(),
       seed_key(),
       {"topics", 4, "topics per page that could be meant"},
       {"long_tokens", 84, "long input of an example at most"}},
      [](const SampleValues& v, const std::filesystem::path& folder) {
        data::write_openkp_sample({v.at("records"), seed_of(v), v.at("topics"), v.at("long_tokens")}, folder);
      }};
  return kKind;
}

}  // namespace etc::openkp
