// XML documents, read strictly: for tests of pictures.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace etc::test {

struct XmlElement {
  std::string name, text;  // the text before its first child
  std::map<std::string, std::string> attributes;
};

// The elements of a document with one root, in the order in which they begin. Throws std::runtime_error where the document
// is not well-formed: tags that do not match, attributes without quotes or twice, unknown entities, control characters.
// Comments, declarations and CDATA are refused: the program writes none.
std::vector<XmlElement> xml_elements(std::string_view document);

}  // namespace etc::test
