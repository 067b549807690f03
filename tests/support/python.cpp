#include "tests/support/python.h"

#include <sys/wait.h>

#include <cstdlib>

namespace etc::test {

namespace {

int status_of(const std::string& command) {
  // The interpreter must not inherit the test's sanitizer settings.
  const int status = std::system(("env -u LD_PRELOAD " + command).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::optional<std::string> python_with(const std::string& modules) {
  const char* chosen = std::getenv("ETC_TEST_PYTHON");
  for (const std::string& python : {std::string(chosen != nullptr ? chosen : ""), std::string("python3")}) {
    if (!python.empty() && status_of("'" + python + "' -c 'import " + modules + "' >/dev/null 2>&1") == 0)
      return python;
  }
  return std::nullopt;
}

int run_python(const std::string& python, const std::string& script_and_arguments) {
  return status_of("'" + python + "' " + script_and_arguments);
}

}  // namespace etc::test
