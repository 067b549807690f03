// Loads the document of a page from a prepared example, a raw record of the model's task, or a plain text.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "data/text/tokenizer.h"
#include "etc_core/nn/encoder.h"
#include "tasks/analyze/document.h"

namespace etc::analyze {

// A loaded model and one example of its input; `feed` keeps the objects alive that the references point to.
struct DocumentSource {
  std::string title, task;
  std::reference_wrapper<const EncoderConfig> model;
  std::reference_wrapper<const data::Tokenizer> vocabulary;
  std::reference_wrapper<Encoder> encoder;
  std::function<EncoderInput(Tape& tape)> feed;
};

// Throws Error like attend_document (document.h).
DocumentSource open_document(const std::filesystem::path& folder, const DocumentRequest& request);

}  // namespace etc::analyze
