// What translates lines of text, as `etc translate` sees it.
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

// A line of text, and the text that its translation begins with; empty: any.
struct SourceLine {
  std::string text, prefix;
};

// Where a model computes, and in which number type its dense layers and its output layer do; norms, attention (but on
// devices with bf16 tiles) and the search are fp32 or more.
struct TranslatorCompute {
  Device device = Device::cpu;
  ComputeType type = ComputeType::fp32;
};

// Gets the translations of a line, best first.
using TakeTranslations = std::function<void(const std::vector<LineTranslation>& translations)>;

class LineTranslator {
 public:
  virtual ~LineTranslator() = default;

  // Calls take for each line, in order. A line without a word has no translation, nor has one that is not UTF-8, which
  // the log says. first_line: the number of the first one, for messages. Throws Error naming a line that is too long, and
  // one whose prefix is not UTF-8, has special pieces, or is longer than a translation may be, before the first is taken.
  virtual void translate(std::span<const SourceLine> lines, std::int64_t first_line, const TakeTranslations& take) = 0;
  virtual std::int64_t most() const = 0;  // translations of a line at most

  // Of all lines so far: pieces, and those that the vocabulary lacks.
  virtual std::int64_t pieces() const = 0;
  virtual std::int64_t unknown_pieces() const = 0;
};

// Which models translate, and how.
struct TranslatorRequest {
  std::vector<std::filesystem::path> folders;  // of one model, or of an ensemble's
  std::filesystem::path vocab;                 // in the place of the one that the first folder keeps; empty: that one
  std::shared_ptr<const Json> options;         // keys that have another value than their default, checked
  TranslatorCompute compute;
  // Bytes of the process, or of the device where it computes on one; 0: any. So many sentences are searched together, and
  // so many translations held, as fit, with the same translations; translate() throws Error naming a line that does not
  // fit alone, and where the lines themselves do not fit.
  std::int64_t memory_limit = 0;
  // Called before each step of a search; what it throws ends translate(). Null: nothing.
  std::function<void()> before_step;
};

// Lines of a text, some at a time; none at its end.
using NextLines = std::function<std::vector<SourceLine>()>;

// The translator as the task's row of tasks/registry.h holds it.
struct TranslatorKind {
  Fields options = {};  // of the search; also options (batch_tokens: --batch-tokens)
  // Null: the task translates nothing.
  std::unique_ptr<LineTranslator> (*open)(const TranslatorRequest& request) = nullptr;
  // The expected peak of a process that translates all these lines as they come, without the weights. At most: every
  // translation is taken to be as long as it may be. Throws Error as open() and translate() do.
  ProcessMemory (*forecast)(const TranslatorRequest& request, const NextLines& next) = nullptr;
};

}  // namespace etc
