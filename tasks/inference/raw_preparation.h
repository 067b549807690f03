// Raw records prepared exactly as a model's training data were.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "tasks/prepare/preparation.h"
#include "tasks/train/model.h"

namespace etc {

// The preparation that the model's folder describes, with labels optional and every record kept. Settings that only
// select one of several input forms are set to accept all (NQ's input_form).
//   where     the beginning of messages, "etc predict"
//   folder    the model's; its Punkt tables are used
//   splitter  "punkt:DIR" instead of these tables; empty: these
// Throws UsageError if the model has no vocabulary, and for a splitter if the task does not split sentences; Error if
// vocabulary or tables are not those of its data.
std::unique_ptr<prepare::Preparation> make_raw_preparation(const std::string& where, const LoadedModel& loaded,
                                                           const std::filesystem::path& folder,
                                                           const std::string& splitter);

// Throws UsageError for a splitter if the task does not split sentences. Empty: none is given.
void require_splitter_of(const std::string& task, const std::string& splitter, const std::string& where);

}  // namespace etc
