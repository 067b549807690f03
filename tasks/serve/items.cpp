#include "tasks/serve/items.h"

#include <algorithm>

#include "data/readers/record_reader.h"
#include "etc_core/base/error.h"
#include "etc_core/base/words.h"
#include "etc_core/nn/count_memory.h"
#include "tasks/analyze/document.h"
#include "tasks/inference/document_model.h"
#include "tasks/text/json_field.h"
#include "tasks/train/evaluate.h"

namespace etc::serve {

namespace {

enum Kind : int { kPredict, kEncode, kAttention };

constexpr std::int64_t kKeysShown = 16;  // per query, on the attention page

// Converts exceptions that `prepare` throws about a request to the matching status.
template <typename Prepare>
auto refusing(const Prepare& prepare) {
  try {
    return prepare();
  } catch (const Refused&) {
    throw;
  } catch (const data::InputFault& fault) {
    throw Refused(400, fault.what());
  } catch (const Error& error) {
    throw Refused(422, error.what());
  }
}

// ---- Records. ----

class RecordJob final : public Job {
 public:
  RecordJob(const Asking& asking, std::vector<data::LoadedExample> examples, std::string what)
      : model_(*asking.records), examples_(std::move(examples)), what_(std::move(what)) {
    const data::Schema& schema = model_.running().model.task->schema();
    for (const data::LoadedExample& example : examples_) {
      costs_.push_back({tokens_of(example.features, schema), 0});
      if (asking.memory > 0) costs_.back().bytes = bytes_of([&] { forward({&example, 1}); });
      tokens += costs_.back().tokens;
      bytes += costs_.back().bytes;
      largest_bytes = std::max(largest_bytes, costs_.back().bytes);
    }
  }

  int kind() const override { return kPredict; }

  void run(std::span<Job* const> jobs, std::int64_t most_tokens, std::int64_t most_bytes) override {
    std::vector<data::LoadedExample> examples;
    std::vector<ExampleRange> records;
    std::vector<Cost> costs;
    for (Job* job : jobs) {
      auto& own = static_cast<RecordJob&>(*job);
      records.push_back({examples.size(), examples.size() + own.examples_.size()});
      std::move(own.examples_.begin(), own.examples_.end(), std::back_inserter(examples));
      costs.insert(costs.end(), own.costs_.begin(), own.costs_.end());
    }
    const auto end_of = [&](std::size_t first) {
      std::size_t end = first;
      for (Cost sum; end < costs.size(); ++end) {
        sum.tokens += costs[end].tokens;
        sum.bytes += costs[end].bytes;
        if (end > first && (sum.tokens > most_tokens || (most_bytes > 0 && sum.bytes > most_bytes))) break;
      }
      return end;
    };
    std::exception_ptr failed;
    try {
      std::vector<Json> answers = answers_of(model_.running().model, examples, records, end_of, what_);
      for (std::size_t i = 0; i < jobs.size(); ++i) static_cast<RecordJob&>(*jobs[i]).answer_ = std::move(answers[i]);
    } catch (const std::exception&) {
      failed = std::current_exception();
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto begin = examples.begin() + static_cast<std::ptrdiff_t>(records[i].first);
      auto& own = static_cast<RecordJob&>(*jobs[i]).examples_;
      std::move(begin, begin + std::ssize(own), own.begin());
    }
    if (failed) std::rethrow_exception(failed);
  }

  const Json& answer() const { return answer_; }

 private:
  struct Cost {
    std::int64_t tokens = 0, bytes = 0;
  };

  void forward(Examples examples) {
    TaskModel& model = model_.running().model;
    EncoderInput input = model.task->feed(examples, what_);
    Tape tape(Recording::off);
    model.forward_in_place(tape, examples, input, ForwardOptions{});
  }

  RecordModel& model_;
  std::vector<data::LoadedExample> examples_;
  std::vector<Cost> costs_;  // of the examples
  std::string what_;
  Json answer_;
};

class RecordItem final : public Item {
 public:
  RecordItem(const Asking& asking, std::string text, const std::string& what)
      : job_(asking, asking.records->prepare_text(std::move(text), what), what) {}

  Job* job() override { return &job_; }
  std::string answer() override { return text::one_line(job_.answer()); }

 private:
  RecordJob job_;
};

// ---- Members of requests. ----

// Throws Refused 400 unless the text is a JSON object, 422 if it has other members than these.
Json object_of(const std::string& text, const std::string& what, const std::vector<std::string>& members) {
  Json object;
  try {
    object = parse_json(text, what);
  } catch (const Error& error) {
    throw Refused(400, error.what());
  }
  if (!object.is_object()) throw Refused(422, what + ": expected a JSON object");
  for (const auto& [key, value] : object.items()) {
    if (std::find(members.begin(), members.end(), key) == members.end()) {
      throw Refused(422, fmt::format("{}: unknown member {}{}: expected {}", what, key, suggestion(key, members),
                                     fmt::join(members, ", ")));
    }
  }
  return object;
}

std::string string_in(const Json& object, const char* key, const std::string& what) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    throw Refused(422, fmt::format("{}: {}: expected a string, got {}", what, key,
                                   found == object.end() ? "none" : found->type_name()));
  }
  return found->get<std::string>();
}

std::string word_in(const Json& object, const char* key, const std::string& what,
                    const std::vector<std::string>& words) {
  if (!object.contains(key)) return words.front();
  std::string word = string_in(object, key, what);
  if (std::find(words.begin(), words.end(), word) == words.end()) {
    throw Refused(422, fmt::format("{}: {}: expected {}, got {}{}", what, key, alternatives(words),
                                   json_line(Json(word)), suggestion(word, words)));
  }
  return word;
}

// ---- Texts. ----

class TextJob final : public Job {
 public:
  TextJob(const Asking& asking, PreparedText text) : encoder_(*asking.texts), text_(std::move(text)) {
    tokens = std::ssize(text_.token_ids) + text_.sentences;
    if (asking.memory <= 0) return;
    // Labels of all pairs with global tokens take real memory even while counting: if they alone exceed the limit,
    // nothing is counted.
    const std::int64_t labels = text_.sentences * (2 * std::ssize(text_.token_ids) + text_.sentences);
    bytes = largest_bytes = labels > asking.memory ? labels : bytes_of([&] { encoder_.encode({&text_, 1}); });
  }

  int kind() const override { return kEncode; }

  void run(std::span<Job* const> jobs, std::int64_t, std::int64_t) override {
    std::vector<PreparedText> texts;
    for (Job* job : jobs) texts.push_back(static_cast<TextJob&>(*job).text_);
    std::vector<EncodedText> all = encoder_.encode(texts);
    for (std::size_t i = 0; i < jobs.size(); ++i) static_cast<TextJob&>(*jobs[i]).encoded_ = std::move(all[i]);
  }

  const EncodedText& encoded() const { return encoded_; }

 private:
  const TextEncoder& encoder_;
  PreparedText text_;
  EncodedText encoded_;
};

class EncodeItem final : public Item {
 public:
  EncodeItem(const Asking& asking, const Json& request, const std::string& what)
      : states_(word_in(request, "states", what, {"mean", "long", "global"})),
        id_(request.value("id", Json())),
        job_(asking, asking.texts->prepare(string_in(request, "text", what), what)) {
    if (states_ == "global" && !asking.texts->model().has_global_tokens()) {
      throw Refused(422, what + ": states: the model has no global tokens, expected long or mean");
    }
  }

  Job* job() override { return &job_; }

  std::string answer() override { return text::one_line(states_answer(id_, job_.encoded(), states_)); }

 private:
  std::string states_;
  Json id_;
  TextJob job_;
};

class TokenizeItem final : public Item {
 public:
  TokenizeItem(const data::Tokenizer& vocabulary, const std::string& text) {
    // Formatted directly: JSON values, one per piece, would take several times the memory of the answer.
    const data::Tokens tokens = vocabulary.encode(text);
    answer_ = fmt::format("{{\"ids\":[{}],\"pieces\":[", fmt::join(tokens.ids, ","));
    for (std::size_t i = 0; i < tokens.pieces.size(); ++i) {
      if (i > 0) answer_ += ',';
      answer_ += text::one_line(tokens.pieces[i]);
    }
    answer_ += "]}";
  }
  std::string answer() override { return std::move(answer_); }

 private:
  std::string answer_;
};

// ---- Documents. ----

data::DocumentForm form_in(const Json& request, const std::string& what) {
  const std::string form = word_in(request, "form", what, {"plain", "markdown", "html"});
  if (form == "markdown") return data::DocumentForm::markdown;
  return form == "html" ? data::DocumentForm::html : data::DocumentForm::plain;
}

class DocumentItem final : public Item {
 public:
  DocumentItem(const Asking& asking, const Json& request, const std::string& what)
      : document_(string_in(request, "document", what)),
        asked_(*asking.records, document_, form_in(request, what),
               document_use(asking.records->task()) == DocumentUse::ask ? string_in(request, "question", what) : "",
               what),
        job_(asking, std::move(asked_.examples()), what) {}

  Job* job() override { return &job_; }
  std::string answer() override { return text::one_line(asked_.in_document(job_.answer())); }

 private:
  std::string document_;
  AskedDocument asked_;
  RecordJob job_;
};

class AttentionJob final : public Job {
 public:
  AttentionJob(const Asking& asking, data::LoadedExample example)
      : model_(*asking.records), vocabulary_(*asking.vocabulary), example_(std::move(example)) {
    tokens = tokens_of(example_.features, model_.running().model.task->schema());
    if (asking.memory > 0) bytes = largest_bytes = bytes_of([&] { attend(); }) + bytes_of_page();
  }

  int kind() const override { return kAttention; }

  void run(std::span<Job* const> jobs, std::int64_t, std::int64_t) override {
    for (Job* job : jobs) {
      auto& own = static_cast<AttentionJob&>(*job);
      analyze::DocumentAttention document = own.attend();
      document.title = "where attention goes";
      document.task = model_.task();
      own.page_ = analyze::document_page(document);
    }
  }

  const std::string& page() const { return page_; }

 private:
  // Memory other than buffers: statistics of each query for the selected layer, and at most its keys of all layers; the
  // page, and the parts it is assembled from.
  std::int64_t bytes_of_page() const {
    const EncoderConfig& model = *model_.running().model.config;
    constexpr std::int64_t kOfNumbers = sparse::kQueryStatistics * std::int64_t{sizeof(double)};
    constexpr std::int64_t kOfKeys = kKeysShown * std::int64_t{sizeof(sparse::TopKey)};
    constexpr std::int64_t kPageRest = 100'000, kPages = 4;
    const std::int64_t rows = tokens * model.num_attention_heads, layers = model.num_hidden_layers;
    const std::int64_t page = kPageRest + rows * layers * kOfKeys / 2;  // an entry takes less than half of kOfKeys
    return rows * (kOfNumbers + (layers + 1) * kOfKeys) + kPages * std::min(analyze::kPageBytes, page);
  }

  analyze::DocumentAttention attend() const {
    TaskModel& model = model_.running().model;
    const std::span<const data::LoadedExample> alone(&example_, 1);
    EncoderInput input = model.task->feed(alone, "etc serve");
    Tape tape(Recording::off);
    model.task->add_to_embeddings(tape, alone, input);
    return analyze::attention_of(*model.encoder, tape, input, vocabulary_, {.top = kKeysShown}, "etc serve");
  }

  RecordModel& model_;
  const data::Tokenizer& vocabulary_;
  data::LoadedExample example_;
  std::string page_;
};

class AttentionItem final : public Item {
 public:
  AttentionItem(const Asking& asking, const Json& request, const std::string& what)
      : document_(string_in(request, "document", what)),
        asked_(*asking.records, document_, form_in(request, what),
               document_use(asking.records->task()) == DocumentUse::ask ? string_in(request, "question", what) : "",
               what),
        job_(asking, window_of(request, what)) {}

  Job* job() override { return &job_; }
  std::string answer() override { return job_.page(); }

 private:
  // The example to show, for a document that is read in several windows.
  data::LoadedExample window_of(const Json& request, const std::string& what) {
    const Json window = request.value("window", Json(0));
    const auto count = std::ssize(asked_.examples());
    if (!window.is_number_integer() || window < 0 || window >= count) {
      throw Refused(
          422, fmt::format("{}: window: expected a whole number below {}, got {}", what, count, json_line(window)));
    }
    return std::move(asked_.examples()[window.get<std::size_t>()]);
  }

  std::string document_;
  AskedDocument asked_;
  AttentionJob job_;
};

}  // namespace

std::int64_t bytes_of(const std::function<void()>& computation) {
  std::int64_t before = 0, peaks = 0;
  count_memory([&] {
    before = memory_ledger::report().total;
    memory_ledger::reset_peak();
    computation();
    peaks = memory_ledger::sum_of_heap_peaks();
  });
  return std::max<std::int64_t>(0, peaks - before);
}

std::unique_ptr<Item> predict_item(const Asking& asking, std::string text, const std::string& what) {
  return refusing([&] { return std::make_unique<RecordItem>(asking, std::move(text), what); });
}

std::unique_ptr<Item> encode_item(const Asking& asking, std::string text, const std::string& what) {
  const Json request = object_of(text, what, {"text", "states", "id"});
  return refusing([&] { return std::make_unique<EncodeItem>(asking, request, what); });
}

std::unique_ptr<Item> tokenize_item(const Asking& asking, std::string text, const std::string& what) {
  const Json request = object_of(text, what, {"text"});
  return std::make_unique<TokenizeItem>(*asking.vocabulary, string_in(request, "text", what));
}

std::unique_ptr<Item> ask_item(const Asking& asking, std::string text, const std::string& what) {
  const Json request = object_of(text, what, {"document", "question", "form"});
  return refusing([&] { return std::make_unique<DocumentItem>(asking, request, what); });
}

std::unique_ptr<Item> attention_item(const Asking& asking, std::string text, const std::string& what) {
  const Json request = object_of(text, what, {"document", "question", "form", "window"});
  return refusing([&] { return std::make_unique<AttentionItem>(asking, request, what); });
}

}  // namespace etc::serve
