// The library's one public header, installed as <etc/longetc.h>: a model folder loaded once, states of texts, answers to
// records and questions about documents; preparing data and training. Everything else may change freely.
//
// Rules of all functions: they throw longetc::Error, whose text is the program's message. Numbers are fp32, arrays
// contiguous, the last dimension fastest; texts are UTF-8, JSON is text. Results are computed on the CPU and have the
// same bits for any number of threads. Objects may be used by several threads: calls on the same model wait for each
// other. Nothing is written to standard output or standard error. L, G, H: long tokens and global tokens of a text, and
// the hidden size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define LONGETC_API __attribute__((visibility("default")))

namespace longetc {

class LONGETC_API Error : public std::runtime_error {
 public:
  enum class Kind {
    failure,     // data, files, numbers or the machine: the program's exit code 1
    usage,       // what was asked for cannot be meant: its exit code 2
    interrupted  // the caller's progress function, or a signal, asked to stop
  };
  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ~Error() override;  // in the library, and so is the type that it is caught by

  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

LONGETC_API const char* version() noexcept;  // "0.1.0"

// Threads that loops run on, of the whole process; 0 puts it back to all processors that it may use. Throws below 0.
LONGETC_API void set_threads(int count);
LONGETC_API int threads();

// Who gets messages, of any thread; null, as at the beginning: nobody. It must not call the library.
enum class Level { info, warning };
LONGETC_API void set_log(std::function<void(Level level, const std::string& message)> receiver);

// How far a long call is. false asks it to stop: it then ends with Error of kind interrupted, when everything that can be
// gone on with is saved. What the function throws ends the call in the same way, and is thrown in the place of that Error.
struct ProgressReport {
  std::string what, unit, note;  // "train", "steps", "loss 0.1234"
  std::int64_t done = 0;
  std::int64_t total = 0;  // 0: not known
};
using Progress = std::function<bool(const ProgressReport& report)>;

// ---- Vocabularies. ----

// Token ids of several texts, one after the other: those of text i are ids[offsets[i]] … ids[offsets[i + 1] - 1].
struct Tokens {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> offsets = {0};  // [texts + 1]
};

class LONGETC_API Tokenizer {
 public:
  // A vocabulary by its name: "*.model" SentencePiece, "*.json" byte-level BPE with merges.txt beside it, "*.bpe" and
  // "*.words" of a translation, "*.chars" characters, else WordPiece, one piece a line. lower_case: of WordPiece alone.
  // Throws when the file is no such vocabulary.
  explicit Tokenizer(const std::string& vocabulary, bool lower_case = true);

  // Pieces of each text, without special tokens ([CLS], [SEP]).
  Tokens encode(const std::vector<std::string>& texts) const;
  // The text that pieces spell: WordPiece with a blank before what does not begin with "##", SentencePiece with "▁" as
  // blank, a translation's with "@@" joined. Throws on an id that is none of the vocabulary's.
  std::string decode(const std::int32_t* ids, std::size_t count) const;
  std::string piece(std::int32_t id) const;            // as the vocabulary spells it; throws as decode
  std::int32_t id_of(const std::string& piece) const;  // throws when there is none spelled so
  std::int32_t size() const;
  std::string kind() const;    // "wordpiece", "sentencepiece", "byte_bpe", "bpe", "word", "characters"
  std::string sha256() const;  // of the file: 64 hex digits

 private:
  friend class Model;
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// ---- Models. ----

struct LoadOptions {
  std::string vocabulary;            // in the place of the one that the folder keeps; empty: that one
  std::string splitter;              // "punkt:FOLDER" in the place of the tables that it keeps; empty: those, or ICU
  std::string decoding = "{}";       // JSON object: keys of section task, as options of `etc predict`
  std::string compute = "fp32";      // or bf16, int8, auto
  std::string scores = "int32";      // of residual attention; or fp16: half the memory, rounded
  std::int64_t memory_limit = 0;     // bytes that computing may take; 0: no limit
  std::int64_t max_long_tokens = 0;  // of a text that is encoded, special ones included; 0: 4096, or the model's limit
};

// Weights that are no file: numbers that another program holds. They are copied; nothing refers to them afterwards.
struct Array {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string type;            // float32, float16, bfloat16; others may be there where the model does not read them
  const void* data = nullptr;  // row-major
};
struct Weights {
  // etc: parameters under our own names. bert, roberta, nezha, xlnet, t5: a state dict of the library `transformers`, of
  // the model or of one with a head, which is left out; the encoder becomes a dense one that computes the same.
  std::string family = "etc";
  std::string config;  // JSON: section `model` of our config.json, or config.json of `transformers`
  std::vector<Array> arrays;
};

// Tokens that are already ids: the model's long input as it is, special tokens included. Nothing is copied.
struct TokenInput {
  const std::int32_t* ids = nullptr;      // of all texts, one after the other
  const std::int64_t* offsets = nullptr;  // [texts + 1], from 0 on: where each text begins, and the end
  std::int64_t texts = 0;
  // Of each id the number of its sentence in its text, from 0 on, in order, none left out; -1: it belongs to none, as
  // special tokens. An encoder with global tokens has one for each sentence. Null: every id belongs to the first.
  const std::int32_t* sentences = nullptr;
};

enum class States {
  long_states,    // a row of each long token
  global_states,  // of each sentence; of encoders with global tokens
  mean            // one row of each text: the mean of the long states of tokens that belong to a sentence
};

// Rows of all texts, one after the other. The numbers live as long as a copy of the pointer.
struct Encoded {
  std::shared_ptr<const float> states;  // [rows, columns]
  std::int64_t rows = 0, columns = 0;
  std::vector<std::int64_t> offsets = {0};  // [texts + 1]: the rows of each text
  Tokens tokens;                            // the long input of each text
  std::vector<std::int32_t> sentences;      // of each of these tokens, as in TokenInput
  std::vector<std::int64_t> read, cut;      // [texts]: tokens of the text that the model saw, and did not
};

enum class DocumentForm { automatic, plain, markdown, html };  // automatic: by how the text begins, html or plain

class LONGETC_API Model {
 public:
  // A model folder, or a run, whose best checkpoint is taken. Its configuration and the options are read and checked at
  // once; the weights are, once, by the first call that needs them, and so are the files that the options name.
  explicit Model(const std::string& folder, const LoadOptions& options = {});
  // An encoder of weights in memory. Texts need options.vocabulary. Throws listing names and shapes that do not agree.
  explicit Model(const Weights& weights, const LoadOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  std::string task() const;    // "" of an encoder alone
  std::string config() const;  // config.json, as JSON
  Tokenizer tokenizer() const;

  // The states of each text, computed alone. Texts are read as `etc encode --text` reads them: CLS and sentences for an
  // encoder with global tokens, CLS, text and SEP for another; what does not fit is cut. Throws on an empty text.
  // Cost: one pass of the encoder a text. Memory: that of the longest text, and the result. Of one text no copy is made.
  Encoded encode(const std::vector<std::string>& texts, States states, const Progress& progress = {});
  // The same of ids. Throws where they are not the vocabulary's, or more than the model has room for.
  Encoded encode(const TokenInput& input, States states, const Progress& progress = {});

  // The answer to one raw record of the model's task, both JSON (tasks/RECORDS.md, tasks/ANSWERS.md), as `etc predict
  // --answers` gives it. Throws saying what is wrong with the record, or that the task has no answers to single records.
  std::string predict(const std::string& record);

  // Of models of hotpotqa, nq and squad: an answer with its evidence, JSON. Of openkp: the key phrases. Places are
  // characters of the document (tasks/ANSWERS.md, "To documents").
  std::string ask(std::string_view document, const std::string& question, DocumentForm form = DocumentForm::automatic);
  std::string keyphrases(std::string_view document, DocumentForm form = DocumentForm::automatic);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- Data and training. ----

struct PrepareOptions {
  std::string task;                  // "wikihop", … as `etc prepare --task`
  std::vector<std::string> inputs;   // raw files, plain or gzip
  std::vector<std::string> targets;  // of translation: the other language of each
  std::string vocabulary;
  std::string output;           // the HDF5 file
  std::string report;           // of faults, JSON lines; empty: the output's name with .rejects.jsonl
  std::string split = "train";  // or dev; test: answers may be missing
  std::string settings = "{}";  // JSON object of the task's settings ({"long_seq_len": 4096}), as --config reads it
  bool strict = false;          // the first rejected record is an error, and nothing is written
};
struct PrepareReport {
  std::int64_t records = 0, examples = 0, rejected = 0, dropped = 0;
  bool complete = true;  // every file was read to its end
  std::string summary;   // lines for people
};
// Raw files → one HDF5 data set, complete or not at all. SIGINT and SIGTERM stop it, too, while it runs.
LONGETC_API PrepareReport prepare(const PrepareOptions& options, const Progress& progress = {});

struct TrainOptions {
  std::string config_file;    // JSON with sections model, task, data, training, as `etc train --config`; or empty
  std::string config = "{}";  // JSON object of the same form, whose keys go before the file's
  std::string output;         // the run's folder; the same call again goes on with the run
};
struct TrainReport {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> best;  // metrics of the best evaluation; empty without evaluation data
};
// The trainer of `etc train`, in this process. Reports progress after every step; asked to stop, by `progress` or by
// SIGINT, SIGTERM or SIGHUP, it saves first. Where no keys are given and the folder holds a run, that run goes on.
LONGETC_API TrainReport train(const TrainOptions& options, const Progress& progress = {});

}  // namespace longetc
