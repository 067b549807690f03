#include "tasks/openkp/prediction_file.h"

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/text/raw_records.h"

namespace etc::openkp {

namespace {

std::vector<Phrase> parse_phrases(const text::JsonField& list) {
  std::vector<Phrase> phrases;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const text::JsonField words = list.element(i);
    Phrase& phrase = phrases.emplace_back();
    for (std::size_t j = 0; j < words.size(); ++j) phrase.push_back(words.element(j).string());
  }
  return phrases;
}

struct PhrasesOfPage {
  std::string url;
  std::vector<Phrase> phrases;
};

PhrasesOfPage parse_page(const text::JsonField& record) {
  const std::string& url = record.member("url").string();
  return {url, parse_phrases(record.named(record.where() + ": url " + url).member("KeyPhrases"))};
}

}  // namespace

PhraseMap read_predictions(const std::filesystem::path& path) {
  PhraseMap pages;
  text::for_each_record(path, data::RecordLayout::lines, [&](const text::JsonField& record) {
    PhrasesOfPage page = parse_page(record);
    if (!pages.insert_or_assign(page.url, std::move(page.phrases)).second) {
      log::warn("{}: url {} occurs again; the last line counts", record.where(), page.url);
    }
  });
  return pages;
}

PhraseMap read_gold(const std::vector<std::filesystem::path>& paths) {
  PhraseMap pages;
  std::map<std::string, std::string> bare;  // url → position of a page without a gold key phrase
  for (const auto& path : paths) {
    text::for_each_record(path, data::RecordLayout::lines, [&](const text::JsonField& record) {
      PhrasesOfPage page = parse_page(record);
      if (normalised_phrases(page.phrases).empty()) {
        bare[page.url] = record.where();
      } else {
        bare.erase(page.url);
      }
      pages[page.url] = std::move(page.phrases);
    });
  }
  text::require_gold(!pages.empty(), paths, "page");
  if (!bare.empty()) {
    const auto& [url, where] = *bare.begin();
    fail(where, "gold page {}: no key phrase to compare with (leave pages without key phrases out of the gold file)",
         url);
  }
  return pages;
}

}  // namespace etc::openkp
