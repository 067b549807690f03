// The sub-commands of the program. Each lives in <name>_command.cpp: it declares its options once (name, default, help)
// and sets a callback that runs it; main.cpp lists them. Results go to stdout, messages and progress to stderr.
//
// A callback that returns ends the program with exit code 0; it throws Error for 1, UsageError for 2, and
// CLI::RuntimeError(code) where the result itself decides.
#pragma once

#include <CLI/CLI.hpp>

namespace etc::cli {

void add_sample_command(CLI::App& app);
void add_prepare_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_benchmark_command(CLI::App& app);
void add_encode_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_convert_command(CLI::App& app);

}  // namespace etc::cli
