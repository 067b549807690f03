// The program's version, written once: in the top CMakeLists.txt.
#pragma once

namespace etc {

// "0.1.0". Intermediate files (such as parts of a preparation) contain it, so that another release does not reuse them.
const char* program_version();

}  // namespace etc
