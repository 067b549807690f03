// The page at /: page.html, embedded into the program by the build.
#pragma once

#include <string>

namespace etc::serve {

std::string page();

}  // namespace etc::serve
