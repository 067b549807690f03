#include "bench/arguments.h"

#include <CLI/CLI.hpp>
#include <type_traits>

#include "etc_core/base/error.h"

namespace etc::bench {

namespace {

template <typename Value>
CLI::Option* add(CLI::App& app, const Argument& argument, Value* value) {
  if constexpr (std::is_same_v<Value, bool>) {
    return app.add_flag(argument.name, *value);
  } else if constexpr (std::is_same_v<Value, std::string> || std::is_same_v<Value, std::vector<std::string>>) {
    return app.add_option(argument.name, *value);
  } else {
    return app.add_option(argument.name, *value)->check(CLI::PositiveNumber);
  }
}

}  // namespace

void read_arguments(const char* program, int argc, char** argv, const std::vector<Argument>& arguments) {
  CLI::App app("", program);
  app.set_help_flag();
  for (const Argument& argument : arguments) {
    CLI::Option* const option = std::visit([&](auto* value) { return add(app, argument, value); }, argument.value);
    option->required(argument.required);
    if (!argument.words.empty()) option->check(CLI::IsMember(argument.words));
    // A list is one word with commas, so that the next word can be another argument.
    if (option->get_items_expected_max() > 1) option->delimiter(',')->allow_extra_args(false);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    fail_usage(program, "{}\n{}", error.what(), app.help());
  }
}

}  // namespace etc::bench
