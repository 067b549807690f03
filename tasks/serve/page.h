// The page at /: page.html, put into the program by the build.
#pragma once

#include <string>

namespace etc::serve {

std::string page();

}  // namespace etc::serve
