// From pieces back to text, and choosing the largest scores.
#include "tasks/text/recover_text.h"

#include "etc_core/base/json.h"
#include "etc_core/ops/register.h"
#include "tasks/text/top_scores.h"
#include "tests/support/catch.h"
#include "tests/tasks/golden_named.h"

using namespace etc;

TEST_CASE("pieces are joined to text", "[tasks][text]") {
  CHECK(text::joined_wordpieces({"em", "##bed", "##ding", "layer"}) == "embedding layer");
  CHECK(text::joined_wordpieces({"##ing", "x", "#", "##"}) == "ing x #");
  CHECK(text::joined_wordpieces({"a", "##", "b"}) == "a b");
  CHECK(text::joined_wordpieces({}).empty());
  CHECK(text::joined_sentencepieces({"▁New", "▁Yo", "rk", "<unk>"}) == "New York<unk>");
  CHECK(text::joined_sentencepieces({"rk", "▁x"}) == "rk x");
}

TEST_CASE("text is recovered by the tokens' place among the source's characters", "[tasks][text]") {
  CHECK(text::recovered_text("1901", "(1901-1977)") == "1901");
  CHECK(text::recovered_text("zurich", "Zürich,") == "Zürich");
  CHECK(text::recovered_text("zurich", "Zu\u0308rich,") == "Zu\u0308rich,");
  CHECK(text::recovered_text("[UNK]", "(abc)") == "(abc)");
  CHECK(text::recovered_text("", "abc") == "abc");
  CHECK(text::recovered_text("u . s", "U.S. Navy") == "U.S");
}

TEST_CASE("text recovery equals the reference's on every golden case", "[tasks][text][golden]") {
  std::int64_t cases = 0;
  for (const auto& path : test::golden_named("hotpotqa_eval", ".json")) {
    const Json golden = read_json_file(path);
    for (const Json& one : golden.at("text_recovery")) {
      ++cases;
      INFO(json_line(one));
      CHECK(text::recovered_text(one.at("token_text").get<std::string>(), one.at("unigram_text").get<std::string>()) ==
            one.at("output").get<std::string>());
    }
  }
  if (cases == 0) test::skip("no golden file hotpotqa_eval*.json");
}

TEST_CASE("the largest values come first, of equals the lower position", "[tasks][text]") {
  ops::register_cpu_ops();
  using Positions = std::vector<std::int64_t>;
  const std::vector<float> values = {1, 3, 2, 3, -1};
  CHECK(text::largest(values, 3) == Positions{1, 3, 2});
  CHECK(text::largest(values, 9) == Positions{1, 3, 2, 0, 4});
  CHECK(text::largest({}, 2).empty());
  CHECK(text::first_largest(values) == 1);
  const auto p = text::softmax(std::vector<float>{1000, 1000, -1000});
  CHECK(p == std::vector<float>{0.5f, 0.5f, 0});
}
