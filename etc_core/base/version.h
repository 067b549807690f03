// Which release of the program this is.
#pragma once

#include <string_view>

namespace etc {

// The version of the CMake project, "0.1.0". Files that one release leaves for a later call of its own (parts of a
// preparation, say) are kept apart by it.
extern const std::string_view kProgramVersion;

}  // namespace etc
