// The library's only public header, installed as <etc/longetc.h>: a model folder loaded once, states of texts, answers
// to records and questions about documents; preparing data and training. Everything else may change without notice.
//
// Rules of all functions: errors are thrown as longetc::Error, whose text is the program's message. Numbers are fp32,
// arrays contiguous with the last dimension fastest; texts are UTF-8, JSON is passed as text. Results are computed on
// the CPU and have the same bits for any number of threads. Objects may be used by several threads; calls on the same
// model are serialised. Nothing is written to standard output or standard error. L, G, H: long tokens and global tokens
// of a text, and the hidden size.
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
    usage,       // invalid arguments: its exit code 2
    interrupted  // the caller's progress function, or a signal, asked to stop
  };
  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ~Error() override;  // defined in the library, so that the type is the same when caught by a program

  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

LONGETC_API const char* version() noexcept;  // "0.1.0"

// Number of threads for parallel loops, for the whole process; 0 restores the default, all processors the process may
// use. Throws if negative.
LONGETC_API void set_threads(int count);
LONGETC_API int threads();

// Sets the receiver of messages from any thread; null (the initial state): messages are dropped. It must not call the
// library.
enum class Level { info, warning };
LONGETC_API void set_log(std::function<void(Level level, const std::string& message)> receiver);

// Progress of a long call. If the function returns false, the call stops: it ends with Error of kind interrupted once
// everything needed to resume is saved. If the function throws, the call ends in the same way and the function's
// exception is thrown instead of that Error.
struct ProgressReport {
  std::string what, unit, note;  // "train", "steps", "loss 0.1234"
  std::int64_t done = 0;
  std::int64_t total = 0;  // 0: not known
};
using Progress = std::function<bool(const ProgressReport& report)>;

// ---- Vocabularies. ----

// Token ids of several texts, concatenated: those of text i are ids[offsets[i]] … ids[offsets[i + 1] - 1].
struct Tokens {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> offsets = {0};  // [texts + 1]
};

class LONGETC_API Tokenizer {
 public:
  // A vocabulary, whose kind follows from the file name: "*.model" SentencePiece, "*.json" byte-level BPE with
  // merges.txt beside it, "*.bpe" and "*.words" of a translation, "*.chars" characters, else WordPiece, one piece per
  // line. lower_case: for WordPiece only. Throws when the file is not a vocabulary of that kind.
  explicit Tokenizer(const std::string& vocabulary, bool lower_case = true);

  // Pieces of each text, without special tokens ([CLS], [SEP]).
  Tokens encode(const std::vector<std::string>& texts) const;
  // The text spelled by the pieces: WordPiece with a blank before each piece that does not begin with "##",
  // SentencePiece with "▁" as blank, a translation's with "@@" joined, byte-level BPE its bytes without incomplete
  // characters, characters one after the other. Throws for an id outside the vocabulary.
  std::string decode(const std::int32_t* ids, std::size_t count) const;
  std::string piece(std::int32_t id) const;            // as the vocabulary spells it; throws as decode
  std::int32_t id_of(const std::string& piece) const;  // throws if the vocabulary has no such piece
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
  std::string vocabulary;            // instead of the one kept in the folder; empty: that one
  std::string splitter;              // "punkt:FOLDER" instead of the tables kept in the folder; empty: those, or ICU
  std::string decoding = "{}";       // JSON object: keys of section task, as options of `etc predict`
  std::string compute = "fp32";      // or bf16, int8, auto
  std::string scores = "int32";      // of residual attention; or fp16: half the memory, rounded
  std::int64_t memory_limit = 0;     // bytes that computing may use; 0: no limit
  std::int64_t max_long_tokens = 0;  // of an encoded text, including special tokens; 0: 4096, or the model's limit
};

// Weights in memory instead of a file. They are copied; nothing refers to the given arrays afterwards.
struct Array {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string type;            // float32, float16, bfloat16; arrays that the model does not read may have other types
  const void* data = nullptr;  // row-major
};
struct Weights {
  // etc: parameters under this project's own names. bert, roberta, nezha, xlnet, t5: a state dict of the library
  // `transformers`, of the model alone or with a head, which is ignored; it becomes an equivalent dense encoder.
  std::string family = "etc";
  std::string config;  // JSON: section `model` of this project's config.json, or config.json of `transformers`
  std::vector<Array> arrays;
};

// Input given as token ids: exactly the model's long input, including special tokens. Nothing is copied.
struct TokenInput {
  const std::int32_t* ids = nullptr;      // of all texts, concatenated
  const std::int64_t* offsets = nullptr;  // [texts + 1], beginning with 0: where each text begins, and the end
  std::int64_t texts = 0;
  // For each id the number of its sentence in its text, from 0, in order and without gaps; -1: not in a sentence, such
  // as special tokens. An encoder with global tokens has one for each sentence. Null: every id belongs to sentence 0.
  const std::int32_t* sentences = nullptr;
};

enum class States {
  long_states,    // one row per long token
  global_states,  // one row per sentence; only encoders with global tokens
  mean            // one row per text: the mean of the long states of tokens that belong to a sentence
};

// Rows of all texts, concatenated. The numbers stay valid as long as a copy of the pointer exists.
struct Encoded {
  std::shared_ptr<const float> states;  // [rows, columns]
  std::int64_t rows = 0, columns = 0;
  std::vector<std::int64_t> offsets = {0};  // [texts + 1]: the rows of each text
  Tokens tokens;                            // the long input of each text
  std::vector<std::int32_t> sentences;      // of each of these tokens, as in TokenInput
  std::vector<std::int64_t> read, cut;      // [texts]: tokens of the text that the model read, and that were cut off
};

enum class DocumentForm { automatic, plain, markdown, html };  // automatic: html or plain, by how the text begins

class LONGETC_API Model {
 public:
  // A model folder, or a run, which stands for its best checkpoint. Its configuration and the options are read and
  // checked immediately; the weights, and files named by the options, are read once, by the first call that needs them.
  explicit Model(const std::string& folder, const LoadOptions& options = {});
  // An encoder with weights in memory. Encoding texts needs options.vocabulary. Throws Error listing names and shapes
  // that do not match.
  explicit Model(const Weights& weights, const LoadOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  std::string task() const;    // "" for an encoder without a task
  std::string config() const;  // config.json, as JSON
  Tokenizer tokenizer() const;

  // The states of each text, computed independently. Texts are read as by `etc encode --text`: CLS and sentences for an
  // encoder with global tokens, otherwise CLS, text and SEP; tokens beyond the limit are cut off. Throws on an empty
  // text. Cost: one encoder pass per text. Memory: that of the longest text, and the result. For a single text no copy
  // is made.
  Encoded encode(const std::vector<std::string>& texts, States states, const Progress& progress = {});
  // The same for ids. Throws for ids outside the vocabulary, or more ids than the model supports.
  Encoded encode(const TokenInput& input, States states, const Progress& progress = {});

  // The answer to one raw record of the model's task, both as JSON (tasks/RECORDS.md, tasks/ANSWERS.md), equal to the
  // output of `etc predict --answers`. Throws if the record is invalid, or the task has no answers to single records.
  std::string predict(const std::string& record);

  // ask: for models of hotpotqa, nq and squad, an answer with its evidence, as JSON. keyphrases: for openkp. Positions
  // are characters of the document (tasks/ANSWERS.md, "To documents").
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
  std::vector<std::string> targets;  // for translation: the file in the other language for each input
  std::string vocabulary;
  std::string output;           // the HDF5 file
  std::string report;           // faults as JSON lines; empty: the output's name with .rejects.jsonl
  std::string split = "train";  // or dev; test: answers may be missing
  std::string settings = "{}";  // JSON object of the task's settings ({"long_seq_len": 4096}), as --config reads it
  bool strict = false;          // the first rejected record is an error, and nothing is written
};
struct PrepareReport {
  std::int64_t records = 0, examples = 0, rejected = 0, dropped = 0;
  bool complete = true;  // every file was read to its end
  std::string summary;   // human-readable lines
};
// Raw files → one HDF5 data set, written completely or not at all. SIGINT and SIGTERM also stop it while it runs.
LONGETC_API PrepareReport prepare(const PrepareOptions& options, const Progress& progress = {});

struct TrainOptions {
  std::string config_file;    // JSON with sections model, task, data, training, as `etc train --config`; or empty
  std::string config = "{}";  // JSON object of the same form; its keys override the file's
  std::string output;         // the run's folder; the same call again resumes the run
};
struct TrainReport {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> best;  // metrics of the best evaluation; empty without evaluation data
};
// The trainer of `etc train`, in this process. Reports progress after every step. When stopped by `progress`, SIGINT,
// SIGTERM or SIGHUP, it saves first. If no keys are given and the folder holds a run, that run is resumed.
LONGETC_API TrainReport train(const TrainOptions& options, const Progress& progress = {});

}  // namespace longetc
