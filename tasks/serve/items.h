// One item of a request (or one line of it): prepared on the connection's thread, computed in a batch by the scheduler,
// and answered with a line of JSON.
#pragma once

#include <memory>
#include <string>

#include "tasks/inference/record_model.h"
#include "tasks/inference/text_encoder.h"
#include "tasks/serve/scheduler.h"

namespace etc::serve {

// Peak bytes of buffers of a computation, in addition to the present use of the process; nothing is computed.
// Thread-safe.
std::int64_t bytes_of(const std::function<void()>& computation);

class Item {
 public:
  virtual ~Item() = default;
  virtual Job* job() { return nullptr; }  // null: nothing to compute
  // Called once, after the job. Throws Error if there is no answer.
  virtual std::string answer() = 0;
};

// The models that requests are read for.
struct Asking {
  RecordModel* records = nullptr;      // null: the folder has no task head, or one without answers
  const TextEncoder* texts = nullptr;  // null: its vocabulary does not support texts
  const data::Tokenizer* vocabulary = nullptr;
  std::int64_t memory = 0;  // available for computing; if not 0, jobs get their bytes; 0: without limit
};

// Each makes an item from a text; what: names it in messages, "the request". Thread-safe. Throw Refused: 400, not JSON;
// 422, it cannot be answered, with the reason.
//   predict    a raw record of the model's task → its answer (tasks/ANSWERS.md)
//   encode     {"text", "states": "mean" (default), "long" or "global", "id"} → {"id", "tokens", "states"}
//   tokenize   {"text"} → {"pieces", "ids"}
//   ask        {"document", "form": "plain" (default), "markdown" or "html", "question"} → the answer to a document
//   attention  the same, and "window" for a record with several windows → an HTML page
std::unique_ptr<Item> predict_item(const Asking& asking, std::string text, const std::string& what);
std::unique_ptr<Item> encode_item(const Asking& asking, std::string text, const std::string& what);
std::unique_ptr<Item> tokenize_item(const Asking& asking, std::string text, const std::string& what);
std::unique_ptr<Item> ask_item(const Asking& asking, std::string text, const std::string& what);
std::unique_ptr<Item> attention_item(const Asking& asking, std::string text, const std::string& what);

}  // namespace etc::serve
