// etc completion and etc manual: input for shells and `man`, generated from the commands' declarations.
#include <memory>
#include <string>

#include "etc_core/base/version.h"
#include "tasks/cli/command_text.h"
#include "tasks/cli/commands.h"
#include "tasks/output.h"

namespace etc::cli {

void add_completion_command(Program& program) {
  program.add("completion", "print a script with which a shell completes etc's words",
              [&program](const Command& command) {
                auto shell = std::make_shared<std::string>();
                command.option("shell", *shell, "bash, zsh or fish").one_of({"bash", "zsh", "fish"}).required();
                command.footer(
                    "Examples:\n"
                    "  source <(etc completion bash)\n"
                    "  etc completion zsh > ~/.zfunc/_etc\n"
                    "  etc completion fish > ~/.config/fish/completions/etc.fish");
                command.action([shell, &program] {
                  const std::vector<CommandText> commands = program.commands();
                  print("{}", *shell == "bash"  ? bash_completion(commands)
                              : *shell == "zsh" ? zsh_completion(commands)
                                                : fish_completion(commands));
                });
              });
}

void add_manual_command(Program& program, const std::string& description) {
  program.add("manual", "print the manual page", [&program, description](const Command& command) {
    command.footer(
        "Examples:\n"
        "  etc manual > etc.1 && man ./etc.1\n"
        "  etc manual | sudo tee /usr/local/share/man/man1/etc.1 > /dev/null");
    command.action([&program, description] {
      print("{}", manual_page(program.commands(), description, std::string("etc ") + program_version()));
    });
  });
}

}  // namespace etc::cli
