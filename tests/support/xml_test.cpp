// The strict reader of XML: what it returns, and what it refuses.
#include "tests/support/xml.h"

#include <stdexcept>

#include "tests/support/catch.h"

namespace etc::test {

TEST_CASE("elements of a document are read in order, with texts and attributes", "[support]") {
  const auto all = xml_elements("<a k=\"1 &amp; 2\">\n<b/><c-d x=\"\">q &lt; \"r\"</c-d>\n</a>\n");
  REQUIRE(all.size() == 3);
  CHECK((all[0].name == "a" && all[0].attributes.at("k") == "1 & 2"));
  CHECK((all[1].name == "b" && all[2].name == "c-d" && all[2].text == "q < \"r\""));
}

TEST_CASE("documents that are not well-formed are refused", "[support]") {
  for (const char* document :
       {"", "a", "<a>", "<a></b>", "</a>", "<a/><b/>", "<a/>b", "<a><b></a></b>", "<a k=1/>", "<a k=\"1/>",
        "<a k=\"<\"/>", "<a k=\"1\" k=\"2\"/>", "<a>&nbsp;</a>", "<a>b &c</a>", "<a>\x01</a>", "<a", "<1/>"}) {
    CAPTURE(document);
    CHECK_THROWS_AS(xml_elements(document), std::runtime_error);
  }
}

}  // namespace etc::test
