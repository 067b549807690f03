// The program's version, written once: in the top CMakeLists.txt.
#pragma once

namespace etc {

const char* program_version();  // "0.1.0"

}  // namespace etc
