// Implementation of the library's Tokenizer.
#pragma once

#include <memory>

#include "data/text/tokenizer.h"
#include "tasks/library/longetc.h"

namespace longetc {

struct Tokenizer::Impl {
  std::shared_ptr<const etc::data::Tokenizer> tokenizer;
};

}  // namespace longetc
