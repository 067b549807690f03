// The sub-commands of the program. Each is implemented in <name>_command.cpp, which declares its options once (name,
// default, help) and the action that runs it; main.cpp lists them. Results go to stdout, messages and progress to
// stderr.
#pragma once

#include "tasks/cli/command.h"

namespace etc::cli {

void add_sample_command(Program& program);
void add_prepare_command(Program& program);
void add_train_command(Program& program);
void add_predict_command(Program& program);
void add_translate_command(Program& program);
void add_eval_command(Program& program);
void add_ask_command(Program& program);
void add_keyphrases_command(Program& program);
void add_serve_command(Program& program);
void add_benchmark_command(Program& program);
void add_encode_command(Program& program);
void add_analyze_command(Program& program);
void add_info_command(Program& program);
void add_convert_command(Program& program);
// For the commands added to the program before it runs; the program must outlive it.
void add_completion_command(Program& program);
void add_manual_command(Program& program, const std::string& description);  // description: the program's

}  // namespace etc::cli
