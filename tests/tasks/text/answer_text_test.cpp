// Answer normalisation and word overlap.
#include "tasks/text/answer_text.h"

#include "tests/support/catch.h"

using etc::text::normalised_answer;
using etc::text::word_overlap;

TEST_CASE("normalised answers lose case, ASCII punctuation, articles and extra white space", "[tasks][text]") {
  CHECK(normalised_answer("The U.S. Navy") == "us navy");
  CHECK(normalised_answer("an  Apple-Pie, a la mode") == "applepie la mode");
  CHECK(normalised_answer("The-Who") == "thewho");
  CHECK(normalised_answer("A").empty());
  CHECK(normalised_answer("").empty());
  CHECK(normalised_answer("“Don’t”") == "“don’t”");
  CHECK(normalised_answer("snake_case") == "snakecase");
  CHECK(normalised_answer("3,500 m") == "3500 m");
  CHECK(normalised_answer("Théâtre de l'Odéon") == "théâtre de lodéon");
  CHECK(normalised_answer("the\u00A0end") == "end");
  CHECK(normalised_answer("a\u0301") == "\u0301");
  CHECK(normalised_answer("the中文") == "the中文");
  CHECK(normalised_answer("1the the1") == "1the the1");
}

TEST_CASE("word overlap counts every word as often as both sides hold it", "[tasks][text]") {
  const auto repeated = word_overlap("to be or not to be", "to be");
  CHECK(repeated.precision == 2.0 / 6);
  CHECK(repeated.recall == 1);
  CHECK(repeated.f1 == 0.5);
  CHECK(word_overlap("a b b", "b b b c").f1 == Approx(4.0 / 7));
  CHECK(word_overlap("x", "y").f1 == 0);
  CHECK(word_overlap("", "").f1 == 0);
}
