// Raw records prepared exactly as a model's training data were.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "tasks/prepare/preparation.h"
#include "tasks/train/model.h"

namespace etc {

// The preparation that the model's folder describes, with labels optional and every record kept. Settings that only say
// in which of several forms records come are set to take each (NQ's input_form).
//   where     what messages begin with, "etc predict"
//   folder    the model's; Punkt tables that it keeps are taken
//   splitter  "punkt:DIR" in their place; empty: those
// Throws UsageError where the model has no vocabulary, and on a splitter where records of its task are not cut; Error where
// vocabulary or tables are not those of its data.
std::unique_ptr<prepare::Preparation> make_raw_preparation(const std::string& where, const LoadedModel& loaded,
                                                           const std::filesystem::path& folder,
                                                           const std::string& splitter);

// Throws UsageError on a splitter for records of a task that cuts no sentences. Empty: none is given.
void require_splitter_of(const std::string& task, const std::string& splitter, const std::string& where);

}  // namespace etc
