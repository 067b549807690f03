// The program: picks the sub-command and turns what it throws into a message and an exit code
// (0 success, 1 failure, 2 usage).
#include <cstdio>
#include <new>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/cli/commands.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("etc: prepares, trains, evaluates and predicts with ETC encoders on long documents", "etc");
  app.require_subcommand(1);
  app.set_version_flag("--version", "etc 0.1.0");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return 0;
  } catch (const CLI::CallForVersion& version) {
    app.exit(version);
    return 0;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "etc: %s\n", error.what());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  etc::log::to_stderr();
  try {
    etc::require_supported_cpu();
    return run(argc, argv);
  } catch (const etc::UsageError& error) {
    std::fprintf(stderr, "etc: %s\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "etc: out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "etc: %s\n", error.what());
    return 1;
  }
}
