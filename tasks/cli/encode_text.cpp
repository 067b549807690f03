#include "tasks/cli/encode_text.h"

#include <functional>
#include <memory>
#include <utility>

#include "data/dataset.h"
#include "data/dataset_info.h"
#include "data/loader/order.h"
#include "data/readers/json_record.h"
#include "data/readers/record_slicer.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "tasks/cli/processes.h"
#include "tasks/output.h"
#include "tasks/prepare/bytes.h"
#include "tasks/prepare/inputs.h"
#include "tasks/prepare/preparation.h"
#include "tasks/text/json_field.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

constexpr const char* kWhere = "etc encode";

class StatesOutput {
 public:
  virtual ~StatesOutput() = default;
  virtual void add(const std::string& id, const EncodedText& text) = 0;
  virtual void finish() = 0;
};

class JsonOutput final : public StatesOutput {
 public:
  // array: one array of all texts instead of one line per text.
  JsonOutput(const EncodeTextOptions& options, bool array)
      : array_(array), states_(options.states), output_(options.output) {}

  void add(const std::string& id, const EncodedText& text) override {
    const std::string line = text::one_line(states_answer(id, text, states_));
    output_.write(array_ ? std::exchange(between_, ",\n") + line : line + "\n");
  }
  void finish() override {
    if (array_) output_.write("\n]\n");
    output_.finish();
  }

 private:
  bool array_;
  std::string states_, between_ = "[\n";
  Output output_;
};

// A file of format 1.0 (numpy.lib.format): magic, length of the header, the header padded to 64 bytes, the numbers. The
// header contains the number of rows, so the numbers are collected first.
void write_npy(const std::string& path, const std::string& type, const std::string& shape, const std::string& bytes) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr std::size_t kBefore = 10, kAlignment = 64;
  header.append(kAlignment - (kBefore + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  const char length[2] = {static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  write_file_atomically(path, std::string("\x93NUMPY\x01\x00", 8) + std::string(length, 2) + header + bytes);
}

class NpyOutput final : public StatesOutput {
 public:
  explicit NpyOutput(const EncodeTextOptions& options) : options_(options) {}

  void add(const std::string&, const EncodedText& text) override {
    const StateRows rows = state_rows(text, options_.states);
    columns_ = rows.columns;
    numbers_.append(reinterpret_cast<const char*>(rows.data),
                    sizeof(float) * static_cast<std::size_t>(rows.rows * rows.columns));
    offsets_.push_back(offsets_.back() + rows.rows);
  }

  void finish() override {
    write_npy(options_.output, "<f4", fmt::format("{}, {}", offsets_.back(), columns_), numbers_);
    if (offsets_file(options_).empty()) return;
    const std::string bytes(reinterpret_cast<const char*>(offsets_.data()), sizeof(std::int64_t) * offsets_.size());
    write_npy(offsets_file(options_), "<i8", fmt::format("{},", offsets_.size()), bytes);
  }

 private:
  const EncodeTextOptions& options_;
  std::int64_t columns_ = 0;
  std::string numbers_;  // float32, row-major
  std::vector<std::int64_t> offsets_{0};
};

data::Schema schema_of(const std::string& states) {
  using data::FeatureKind;
  using data::StoredType;
  data::Schema schema;
  schema.task = "text_states";
  schema.features = {{"id", FeatureKind::string, StoredType::u8, "", {}, {}},
                     {"long_token_ids", FeatureKind::ragged, StoredType::i32, schema.long_align, {}, {}},
                     {"tokens_read", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                     {"tokens_cut", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                     {states, FeatureKind::ragged, StoredType::f32, "", {}, {}}};
  return schema;
}

class H5Output final : public StatesOutput {
 public:
  H5Output(const TextEncoder& encoder, const EncodeTextOptions& options)
      : states_(options.states), writer_(options.output, schema_of(options.states), info_of(encoder)) {}

  void add(const std::string& id, const EncodedText& text) override {
    const StateRows rows = state_rows(text, states_);
    data::Example row;
    row["id"] = id;
    row["long_token_ids"] = std::vector<std::int64_t>(text.token_ids.begin(), text.token_ids.end());
    row["tokens_read"] = text.tokens.read;
    row["tokens_cut"] = text.tokens.cut;
    row[states_] = std::vector<float>(rows.data, rows.data + rows.rows * rows.columns);
    writer_.append(row);
    ++count_;
  }
  void finish() override { writer_.finish({}, count_, 0, 0); }

 private:
  static data::DatasetInfo info_of(const TextEncoder& encoder) {
    data::DatasetInfo info;
    info.task = "text_states";
    info.split = "text";
    info.vocab_sha256 = encoder.vocab_sha256();
    info.preprocess_config = {{"model", encoder.model().to_json()}};
    return info;
  }

  std::string states_;
  data::DatasetWriter writer_;
  std::int64_t count_ = 0;
};

std::unique_ptr<StatesOutput> open_output(const TextEncoder& encoder, const EncodeTextOptions& options) {
  const std::string ending = std::filesystem::path(options.output).extension().string();
  if (options.output == "-" || ending == ".jsonl") return std::make_unique<JsonOutput>(options, false);
  if (ending == ".json") return std::make_unique<JsonOutput>(options, true);
  if (ending == ".npy") return std::make_unique<NpyOutput>(options);
  if (ending == ".h5" || ending == ".hdf5") return std::make_unique<H5Output>(encoder, options);
  fail_usage(kWhere, "--output {}: expected -, or a name that ends in .jsonl, .json, .npy or .h5", options.output);
}

// The text and id of a line.
std::pair<std::string, std::string> text_of(const Json& line, std::int64_t number, const std::string& place) {
  if (line.is_string()) return {line.get<std::string>(), std::to_string(number)};
  const auto text = line.is_object() ? line.find("text") : line.end();
  if (text == line.end() || !text->is_string())
    fail(place, "expected a string, or an object with a string \"text\", got {}", prepare::quoted(json_line(line)));
  const auto id = line.find("id");
  if (id == line.end()) return {text->get<std::string>(), std::to_string(number)};
  return {text->get<std::string>(), id->is_string() ? id->get<std::string>() : json_line(*id)};
}

constexpr std::size_t kTextsOfProcess = 4;  // per window

struct Text {
  std::string text, id, place;
};

// Serialises the parts of an encoded text needed for output, to send them to another process.
void put(const EncodedText& text, const std::string& states, prepare::ByteWriter& out) {
  const StateRows rows = state_rows(text, states);
  out.put(text.token_ids);
  out.put(text.tokens.read);
  out.put(text.tokens.cut);
  out.put(rows.columns);
  out.put(std::vector<float>(rows.data, rows.data + rows.rows * rows.columns));
}

EncodedText take_encoded(const std::string& states, prepare::ByteReader& in) {
  EncodedText text;
  in.get(text.token_ids);
  in.get(text.tokens.read);
  in.get(text.tokens.cut);
  const auto columns = in.get<std::int64_t>();
  std::vector<float> rows = in.get<std::vector<float>>();
  if (states == "mean") {
    text.mean = std::move(rows);
  } else {
    const Tensor values = Tensor::from(rows, {std::ssize(rows) / columns, columns}, Purpose::activations);
    (states == "long" ? text.long_states : text.global_states) = values;
  }
  return text;
}

// Encodes texts in windows, of which each process computes a share.
class TextWindows {
 public:
  using Take = std::function<void(const std::string& id, const EncodedText& text)>;
  // take: receives every text in order, in the first process.
  TextWindows(const TextEncoder& encoder, std::string states, Take take = nullptr)
      : encoder_(encoder), states_(std::move(states)), take_(std::move(take)) {}

  // most: texts per window.
  void add(Text text, std::size_t most) {
    window_.push_back(std::move(text));
    if (window_.size() == (processes().size() == 1 ? 1 : most)) flush();
  }

  void flush() {
    if (window_.size() < 2) {
      for (const Text& text : window_) take_(text.id, encode(text));
    } else {
      send();
      share();
    }
    window_.clear();
  }

  void finish() { from_first(processes(), ""); }

  // For all processes but the first, until the first one calls finish().
  void help() {
    for (std::string sent = from_first(processes(), ""); !sent.empty(); sent = from_first(processes(), "")) {
      window_.clear();
      for (prepare::ByteReader in(sent); !in.at_end();) {
        Text& text = window_.emplace_back();
        for (std::string* part : {&text.text, &text.id, &text.place}) in.get(*part);
      }
      share();
    }
  }

 private:
  EncodedText encode(const Text& text) const {
    stop_if_told(processes(), "etc encode: stopped before the end");
    return encoder_.encode(text.text, text.place);
  }

  void send() const {
    prepare::ByteWriter out;
    for (const Text& text : window_) {
      for (const std::string* part : {&text.text, &text.id, &text.place}) out.put(*part);
    }
    from_first(processes(), out.text());
  }

  void share() {
    const bool first = processes().first();
    const data::Share mine = data::share_of(std::ssize(window_), processes().rank(), processes().size());
    prepare::ByteWriter own;
    for (std::int64_t i = mine.begin; i < mine.end; ++i) {
      const Text& text = window_[static_cast<std::size_t>(i)];
      first ? take_(text.id, encode(text)) : put(encode(text), states_, own);
    }
    auto next = static_cast<std::size_t>(mine.end);  // only in the first process, whose texts come first
    for (const std::string& theirs : collect(processes(), own.text())) {
      for (prepare::ByteReader in(theirs); !in.at_end();) take_(window_[next++].id, take_encoded(states_, in));
    }
  }

  const TextEncoder& encoder_;
  std::string states_;
  Take take_;
  std::vector<Text> window_;
};

}  // namespace

std::string offsets_file(const EncodeTextOptions& options) {
  return options.output.ends_with(".npy") && options.states != "mean" ? options.output + ".offsets.npy" : "";
}

void encode_texts(const TextEncoder& encoder, const EncodeTextOptions& options) {
  if (options.states == "global" && !encoder.model().has_global_tokens())
    fail_usage(kWhere, "--states global: the model has no global tokens, expected long or mean");
  const StopSignal stop_signal;
  if (!processes().first()) return TextWindows(encoder, options.states).help();
  const auto output = open_output(encoder, options);
  std::int64_t texts = 0, read = 0, cut = 0;
  TextWindows windows(encoder, options.states, [&](const std::string& id, const EncodedText& encoded) {
    output->add(id, encoded);
    read += encoded.tokens.read;
    cut += encoded.tokens.cut;
  });
  for (const std::string& input : options.inputs) {
    data::ByteStream stream(input);
    data::RecordSlicer lines(stream, data::RecordLayout::lines);
    data::RecordSlice slice;
    // The writer of a stream may wait for the states of one text before it sends the next.
    const std::size_t most =
        prepare::is_stream(input) ? 1 : kTextsOfProcess * static_cast<std::size_t>(processes().size());
    try {
      while (lines.next(slice)) {
        const std::string place = fmt::format("{}: line {}", data::raw_file_text(input), slice.begin.line);
        const auto [text, id] = text_of(data::parse_record(slice).value, texts++, place);
        windows.add({text, id, place}, most);
      }
    } catch (const data::InputFault& fault) {
      fail(
          data::raw_file_text(input),
          "{}: {}: expected texts in JSON, each a string or an object with \"text\" (jq -Rs . FILE makes one of a file "
          "of plain text)",
          fault.code(), fault.what());
    }
    windows.flush();
  }
  windows.finish();
  if (texts == 0) fail(kWhere, "the input holds no text");
  output->finish();
  log::info("{} texts, {} tokens read, {} cut", texts, read, cut);
}

}  // namespace etc::cli
