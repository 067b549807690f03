#include "tasks/cli/encode_text.h"

#include <cstring>
#include <memory>
#include <utility>

#include "data/dataset.h"
#include "data/readers/json_record.h"
#include "data/readers/record_slicer.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "tasks/output.h"
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
  // array: one of all texts instead of a line each.
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
// header says how many rows there are, so the numbers are collected first.
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
    if (options_.states == "mean") return;
    const std::string bytes(reinterpret_cast<const char*>(offsets_.data()), sizeof(std::int64_t) * offsets_.size());
    write_npy(options_.output + ".offsets.npy", "<i8", fmt::format("{},", offsets_.size()), bytes);
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

// A line's text and id.
std::pair<std::string, std::string> text_of(const Json& line, std::int64_t number, const std::string& place) {
  if (line.is_string()) return {line.get<std::string>(), std::to_string(number)};
  const auto text = line.is_object() ? line.find("text") : line.end();
  if (text == line.end() || !text->is_string())
    fail(place, "expected a string, or an object with a string \"text\", got {}", prepare::quoted(json_line(line)));
  const auto id = line.find("id");
  if (id == line.end()) return {text->get<std::string>(), std::to_string(number)};
  return {text->get<std::string>(), id->is_string() ? id->get<std::string>() : json_line(*id)};
}

}  // namespace

void encode_texts(const TextEncoder& encoder, const EncodeTextOptions& options) {
  if (options.states == "global" && !encoder.model().has_global_tokens())
    fail_usage(kWhere, "--states global: the model has no global tokens, expected long or mean");
  const auto output = open_output(encoder, options);
  const StopSignal listening;
  std::int64_t texts = 0, read = 0, cut = 0;
  for (const std::string& input : options.inputs) {
    data::ByteStream stream(input);
    data::RecordSlicer lines(stream, data::RecordLayout::lines);
    data::RecordSlice slice;
    try {
      while (lines.next(slice)) {
        if (StopSignal::requested()) throw Interrupted("etc encode: stopped before the end");
        const std::string place = fmt::format("{}: line {}", data::raw_file_text(input), slice.begin.line);
        const auto [text, id] = text_of(data::parse_record(slice).value, texts++, place);
        const EncodedText encoded = encoder.encode(text, place);
        output->add(id, encoded);
        read += encoded.tokens.read;
        cut += encoded.tokens.cut;
      }
    } catch (const data::InputFault& fault) {
      fail(
          data::raw_file_text(input),
          "{}: {}: expected texts in JSON, each a string or an object with \"text\" (jq -Rs . FILE makes one of a file "
          "of plain text)",
          fault.code(), fault.what());
    }
  }
  if (texts == 0) fail(kWhere, "the input holds no text");
  output->finish();
  log::info("{} texts, {} tokens read, {} cut", texts, read, cut);
}

}  // namespace etc::cli
