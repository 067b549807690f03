// Interface of a line translator, for `etc translate`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/process_memory.h"

namespace etc {

struct LineTranslation {
  std::string text;
  double score = 0;  // sum of log-probabilities / length^α
};

// A line of text, and the prefix that its translation must begin with; empty: any.
struct SourceLine {
  std::string text, prefix;
};

// The device of a model, and the number type of its dense layers and its output layer. Norms, attention (except on
// devices with bf16 tiles) and the search use fp32 or more.
struct TranslatorCompute {
  Device device = Device::cpu;
  ComputeType type = ComputeType::fp32;
};

// Receives what a translator has made of the lines given to it.
struct TranslationSink {
  std::function<void(const std::vector<LineTranslation>& translations)> take;  // of each line in order, best first
  // Called during the search with the share (0 … 1) of the lines, by their pieces, that has been searched. May be null.
  std::function<void(double share)> searched = nullptr;
};

class LineTranslator {
 public:
  virtual ~LineTranslator() = default;

  // Calls sink.take for each line, in order. A line without words has no translation; neither has a line that is not
  // UTF-8, which the log reports. first_line: the number of the first line, for messages. The first call logs the
  // expected peak memory before it searches, with translations of the greatest length allowed. Before the first line is
  // taken, throws Error naming a line that is too long, or whose prefix is not UTF-8, has special pieces, or is longer
  // than a translation may be.
  virtual void translate(std::span<const SourceLine> lines, std::int64_t first_line, const TranslationSink& sink) = 0;
  virtual std::int64_t most() const = 0;  // largest number of translations of a line

  // Over all lines so far: pieces, and pieces that the vocabulary lacks.
  virtual std::int64_t pieces() const = 0;
  virtual std::int64_t unknown_pieces() const = 0;
};

// The models to translate with, and how.
struct TranslatorRequest {
  std::vector<std::filesystem::path> folders;  // of one model, or of an ensemble's
  std::filesystem::path vocab;                 // instead of the one in the first folder; empty: that one
  std::shared_ptr<const Json> options;         // keys whose value differs from the default, checked
  TranslatorCompute compute;
  // Bytes of the process, or of the device that computes; 0: without limit. As many sentences are searched together,
  // and as many translations held, as fit; the translations do not depend on it. translate() throws Error naming a line
  // that does not fit alone, and Error when the lines themselves do not fit.
  std::int64_t memory_limit = 0;
  // Called before each step of a search; an exception it throws ends translate(). Null: nothing.
  std::function<void()> before_step;
};

// Lines of a text, some at a time; none at its end.
using NextLines = std::function<std::vector<SourceLine>()>;

// The translator as stored in the task's row of tasks/registry.h.
struct TranslatorKind {
  Fields options = {};  // of the search; also options (batch_tokens: --batch-tokens)
  // Null: the task cannot translate.
  std::unique_ptr<LineTranslator> (*open)(const TranslatorRequest& request) = nullptr;
  // The expected peak of a process that translates all these lines, without the weights. An upper bound: every
  // translation is assumed to have the greatest length allowed. Throws Error as open() and translate() do.
  ProcessMemory (*forecast)(const TranslatorRequest& request, const NextLines& next) = nullptr;
};

}  // namespace etc
