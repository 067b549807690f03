// The parts of the module _longetc, one per source file. Each adds its classes and functions.
#pragma once

#include <nanobind/nanobind.h>

namespace etc::python {

void add_errors(nanobind::module_& module);
void add_tokenizer(nanobind::module_& module);
void add_model(nanobind::module_& module);
void add_runs(nanobind::module_& module);

}  // namespace etc::python
