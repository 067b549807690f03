// The program's version, written once: in the top CMakeLists.txt.
#pragma once

namespace etc {

// "0.1.0". Files that one release leaves for a later call of its own (parts of a preparation, say) are kept apart by it.
const char* program_version();

}  // namespace etc
