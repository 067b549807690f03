// Gzip data for tests of readers.
#pragma once

#include <string>
#include <string_view>

namespace etc::test {

std::string gzip(std::string_view bytes);

}  // namespace etc::test
