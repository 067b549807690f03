#include "data/text/icu_sentences.h"

#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <climits>
#include <new>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"

namespace etc::data {

namespace {

void check(UErrorCode code, const char* what) {
  if (code == U_MEMORY_ALLOCATION_ERROR) throw std::bad_alloc();
  if (U_FAILURE(code)) fail("icu", "cannot {}: {}", what, u_errorName(code));
}

class IcuSentences : public SentenceSplitter {
 public:
  IcuSentences() {
    UErrorCode code = U_ZERO_ERROR;
    rules_.reset(icu::BreakIterator::createSentenceInstance(icu::Locale::getRoot(), code));
    check(code, "load its sentence rules (is the package libicu's data installed?)");
  }

  std::vector<ByteSpan> split(std::string_view utf8) const override {
    if (utf8.size() > INT_MAX) fail("icu", "expected a document below 2 GiB, got {} bytes", utf8.size());
    UErrorCode code = U_ZERO_ERROR;
    UText document = UTEXT_INITIALIZER;
    utext_openUTF8(&document, utf8.data(), static_cast<std::int64_t>(utf8.size()), &code);
    const std::unique_ptr<icu::BreakIterator> boundaries(rules_->clone());
    boundaries->setText(&document, code);  // keeps its own reference to the text
    utext_close(&document);
    check(code, "read a document");
    std::vector<ByteSpan> sentences;
    std::int32_t begin = boundaries->first();
    for (std::int32_t end = boundaries->next(); end != icu::BreakIterator::DONE; end = boundaries->next()) {
      const std::string_view sentence =
          strip(utf8.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
      if (!sentence.empty()) sentences.push_back({sentence.begin() - utf8.begin(), sentence.end() - utf8.begin()});
      begin = end;
    }
    return sentences;
  }

  std::string name() const override { return "icu"; }
  std::string tables_sha256() const override { return ""; }

 private:
  std::unique_ptr<icu::BreakIterator> rules_;
};

}  // namespace

std::unique_ptr<SentenceSplitter> make_icu_splitter() {
  return std::make_unique<IcuSentences>();
}

}  // namespace etc::data
