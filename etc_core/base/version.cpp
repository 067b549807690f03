#include "etc_core/base/version.h"

namespace etc {

const std::string_view kProgramVersion = ETC_PROGRAM_VERSION;  // defined for this file alone

}  // namespace etc
