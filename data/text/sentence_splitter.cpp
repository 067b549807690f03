#include "data/text/sentence_splitter.h"

#include "data/text/icu_sentences.h"
#include "data/text/punkt.h"
#include "etc_core/base/error.h"

namespace etc::data {

std::unique_ptr<SentenceSplitter> load_splitter(const std::string& specification) {
  constexpr std::string_view kPunkt = "punkt:";
  if (specification == "icu") return make_icu_splitter();
  if (specification.starts_with(kPunkt) && specification.size() > kPunkt.size()) {
    return make_punkt(read_punkt_tables(specification.substr(kPunkt.size())));
  }
  fail_usage("splitter", "expected \"icu\" or \"punkt:DIR\" (DIR: the folder of the Punkt tables), got \"{}\"",
             specification);
}

}  // namespace etc::data
