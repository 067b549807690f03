// The real RoBERTa vocabulary against the real SentencePiece model that holds GPT-2's pieces.
#include <algorithm>

#include "data/text/tokenizer.h"
#include "etc_core/base/error.h"
#include "etc_core/checkpoint/convert/bert/vocabulary.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using namespace etc::convert;
namespace fs = std::filesystem;

TEST_CASE("RoBERTa's real vocabulary meets the real SentencePiece model piece by piece", "[convert][golden]") {
  const auto data = test::real_data_folder();
  if (!data || !fs::exists(*data / "vocab/roberta_vocab.json") || !fs::exists(*data / "vocab/bigbird_gpt2.model")) {
    return test::skip("no RoBERTa vocabulary or SentencePiece model of its pieces");
  }
  const auto source = read_source_vocabulary(*data / "vocab/roberta_vocab.json", 50265);
  const auto tokenizer = data::load_tokenizer(*data / "vocab/bigbird_gpt2.model");
  const VocabularyMatch match =
      match_vocabularies(source, BertKind::roberta, tokenizer->vocab_size(), [&](const std::string& piece) {
        try {
          return std::optional<std::int64_t>(tokenizer->piece_id(piece));
        } catch (const Error&) {
          return std::optional<std::int64_t>();
        }
      });
  // All 50,257 pieces of GPT-2, <s>, </s>, <pad>, <unk>, and the three special ones; not found: made-up words, <mask>.
  CHECK(tokenizer->vocab_size() - match.unmatched_targets == 50257 + 4 + 3 + 1);
  CHECK(match.unmatched_sources == std::vector<std::string>{"madeupword0000", "madeupword0001", "madeupword0002"});
  const auto row = [&](const std::string& piece) {
    return match.source_rows.at(static_cast<std::size_t>(tokenizer->piece_id(piece)));
  };
  CHECK(source.at(static_cast<std::size_t>(row("\xE2\x96\x81the"))) == "\xC4\xA0the");
  CHECK(row("[CLS]") == 0);
  CHECK(row("[SEP]") == 2);
  CHECK(row("[MASK]") == 50264);
}
