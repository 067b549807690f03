#include "etc_core/base/version.h"

namespace etc {

const char* program_version() {
  return ETC_VERSION;
}

}  // namespace etc
