// Preparations with a byte-level vocabulary: words after a blank, RoBERTa's special pieces, spans that are the answers.
#include "data/text/byte_bpe.h"

#include "etc_core/base/json.h"
#include "tasks/glue/prepare.h"
#include "tasks/registry.h"
#include "tasks/text/offset_text.h"
#include "tasks/text/recover_text.h"
#include "tasks/text/special_pieces.h"
#include "tests/data/text/small_byte_bpe.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using Numbers = std::vector<std::int64_t>;
using Words = std::vector<std::string>;

namespace {

struct Prepared {
  test::TemporaryFolder folder;
  std::unique_ptr<data::Tokenizer> tokenizer = test::small_byte_bpe(folder.path());
  prepare::Converted converted;

  Prepared(const std::string& task, const Json& record, const Json& settings = Json::object()) {
    const auto& kind = preparation_kind(task);
    const auto preparation = kind.make(with_overrides(kind, kind.settings.defaults(), settings, "test"),
                                       folder / "vocab.json", prepare::Labels::required);
    CHECK(preparation->preprocess_config().at("tokenizer") == "byte_bpe");
    data::RecordSlice slice;
    slice.text = json_line(record);
    slice.text.reserve(slice.text.size() + data::kTextPadding);
    slice.stands_alone = true;
    converted = preparation->convert_record(slice);
    for (const data::Fault& fault : converted.faults.rows()) INFO(fault.code << ": " << fault.message);
    REQUIRE(converted.examples.size() == 1);
  }

  const Numbers& numbers(const char* name) const { return std::get<Numbers>(converted.examples[0].at(name)); }
  std::int64_t number(const char* name) const { return std::get<std::int64_t>(converted.examples[0].at(name)); }

  Words pieces(const char* name, std::int64_t first, std::int64_t end) const {
    Words words;
    for (std::int64_t i = first; i < end; ++i)
      words.push_back(tokenizer->piece(static_cast<std::int32_t>(numbers(name).at(static_cast<std::size_t>(i)))));
    return words;
  }
};

}  // namespace

TEST_CASE("answers are found in byte-level pieces and read back from them", "[tasks][text]") {
  const test::TemporaryFolder folder;
  const auto tokenizer = test::small_byte_bpe(folder.path());
  const std::string sentence = "In  the (inner) caf\u00E9, there.";
  const text::OffsetText text(sentence, *tokenizer);
  const auto answer = [&](const std::string& wanted) {
    const auto found =
        text.find(wanted, text::OffsetText(wanted, *tokenizer).ids(), text::LeadingSeparator::first_unigram);
    REQUIRE(found.size() == 1);
    Words pieces;
    for (std::int64_t i = found[0].tokens.first; i <= found[0].tokens.last; ++i)
      pieces.push_back(tokenizer->piece(text.ids()[static_cast<std::size_t>(i)]));
    return text::answer_in_words(*tokenizer, pieces, "In the (inner) caf\u00E9, there.");
  };
  CHECK(answer("caf\u00E9") == "caf\u00E9");
  CHECK(answer("In") == "In");
  CHECK(answer("inner") == "(inner)");  // after a bracket it has other pieces
  CHECK(answer("there.") == "there.");
  CHECK(text::answer_in_words(*tokenizer, {"\u00A9"}, "caf\u00E9") == "caf\u00E9");  // half of a character
}

TEST_CASE("HotpotQA is prepared with a byte-level vocabulary", "[tasks][text]") {
  const Prepared p("hotpotqa", {{"_id", "h"},
                                {"question", "the inn?"},
                                {"answer", "Thin Inn"},
                                {"context", Json::parse(R"([["Inn", ["The inner Thin Inn is there."]]])")},
                                {"supporting_facts", Json::parse(R"([["Inn", 0]])")},
                                {"type", "bridge"},
                                {"level", "hard"}});
  const auto first = p.number("answer_begins"), last = p.number("answer_ends");
  CHECK(data::joined_byte_pieces(p.pieces("long_token_ids", first, last + 1)) == "Thin Inn");
  CHECK(p.pieces("long_token_ids", 0, 5) == Words{"<s>", "\u0120the", "\u0120in", "n", "?"});
  const Numbers& globals = p.numbers("global_token_ids");
  CHECK(p.tokenizer->piece(static_cast<std::int32_t>(globals.at(1))) == text::kByteQuestion);
}

TEST_CASE("SQuAD is prepared with a byte-level vocabulary as RoBERTa reads pairs", "[tasks][text]") {
  const Prepared p(
      "squad",
      {{"context", "the inner Inn, there"},
       {"question", {{"id", "q"}, {"question", "in"}, {"answers", {{{"text", "Inn"}, {"answer_start", 10}}}}}}});
  CHECK(p.pieces("token_ids", 0, 5) == Words{"<s>", "in", "</s>", "</s>", "\u0120the"});
  CHECK(p.pieces("token_ids", p.number("start_position"), p.number("end_position") + 1) ==
        Words{"\u0120", "I", "n", "n"});
  CHECK(p.numbers("segment_ids") == Numbers(p.numbers("token_ids").size(), 0));
  CHECK(p.pieces("token_ids", std::ssize(p.numbers("token_ids")) - 1, std::ssize(p.numbers("token_ids"))) ==
        Words{"</s>"});
}

TEST_CASE("GLUE's pairs with a byte-level vocabulary have two separators and one segment", "[tasks][text]") {
  const test::TemporaryFolder folder;
  const auto tokenizer = test::small_byte_bpe(folder.path());
  const auto id = [&](const char* piece) { return std::int64_t{tokenizer->piece_id(piece)}; };
  const auto pair = glue::sequence_of({"0", "the", "in in in", -1, {}}, *tokenizer, 7);
  CHECK(pair.ids == Numbers{id("<s>"), id("the"), id("</s>"), id("</s>"), id("in"), id("\u0120in"), id("</s>")});
  CHECK(pair.segments == Numbers(7, 0));
  CHECK(glue::sequence_of({"0", "the", "", -1, {}}, *tokenizer, 7).ids == Numbers{id("<s>"), id("the"), id("</s>")});
}

TEST_CASE("WikiHop finds mentions in byte-level pieces, whatever their case", "[tasks][text]") {
  const Prepared p("wikihop", {{"id", "w"},
                               {"query", "in the"},
                               {"answer", "caf\u00E9"},
                               {"candidates", {"caf\u00E9", "other"}},
                               {"supports", {"The CAF\u00C9 is there."}}});
  std::string linked;
  const Numbers& links = p.numbers("l2g_linked_ids");
  const Numbers& types = p.numbers("long_token_type_ids");
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (types[i] == 1 && links[i] == 0) linked += p.pieces("long_token_ids", i, i + 1)[0];
  }
  CHECK(data::joined_byte_pieces({linked}) == "CAF\u00C9");
}

TEST_CASE("pages of Natural Questions and OpenKP have words behind blanks", "[tasks][text]") {
  const Prepared nq("nq",
                    {{"example_id", 1},
                     {"question_text", "in"},
                     {"document_tokens",
                      {{{"token", "<P>"}, {"html_token", true}},
                       {{"token", "the"}, {"html_token", false}},
                       {{"token", "</P>"}, {"html_token", true}}}},
                     {"long_answer_candidates", {{{"start_token", 0}, {"end_token", 3}, {"top_level", true}}}},
                     {"annotations",
                      {{{"long_answer", {{"start_token", 0}, {"end_token", 3}}},
                        {"short_answers", {{{"start_token", 1}, {"end_token", 2}}}},
                        {"yes_no_answer", "NONE"}}}}},
                    {{"input_form", "original"}});
  CHECK(nq.pieces("token_ids", 0, 6) ==
        Words{"<s>", "in", "</s>", text::kByteTagOpen, "\u0120the", text::kByteTagClose});
  const std::string feature = "[1,2,3,4,1,0,0,1,9,0,1,2,3,4,1,0,0,0,9,0]";
  const Prepared page(
      "openkp",
      {{"url", "u"},
       {"text", "the inner"},
       {"KeyPhrases", {{"inner"}}},
       {"VDOM", "[{\"Id\":0,\"text\":\"the inner\",\"start_idx\":0,\"end_idx\":2,\"feature\":" + feature + "}]"}});
  CHECK(page.pieces("long_token_ids", 0, 2) == Words{"\u0120the", "\u0120in"});
}
