#include "etc_core/base/error.h"

namespace etc {

void throw_error(const std::string& where, fmt::string_view format, fmt::format_args args) {
  throw Error(where + ": " + fmt::vformat(format, args));
}

void throw_usage_error(const std::string& where, fmt::string_view format, fmt::format_args args) {
  throw UsageError(where + ": " + fmt::vformat(format, args));
}

}  // namespace etc
