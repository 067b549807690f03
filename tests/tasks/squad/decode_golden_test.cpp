// Answers, lists of answers and null odds against those of the published program.
#include <map>

#include "etc_core/ops/register.h"
#include "tasks/squad/decode.h"
#include "tasks/squad/prepare.h"
#include "tasks/squad/windows.h"
#include "tasks/text/recover_text.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/golden_tables.h"
#include "tests/tasks/squad/golden_squad.h"

using namespace etc;
using namespace etc::squad;

namespace {

using Floats = std::vector<float>;

// The largest of one window's logits.
std::vector<ops::Ranked> ranked(const Floats& logits, std::int64_t count) {
  const std::int64_t offsets[] = {0, std::ssize(logits)};
  std::vector<ops::Ranked> top(static_cast<std::size_t>(std::min(count, offsets[1])));
  ops::top_k(Device::cpu, {1, 1, std::ssize(top), offsets, logits.data(), top.data()});
  return top;
}

void add_window(QuestionDecoder& decoder, const Floats& starts, const Floats& ends, std::int64_t count,
                const data::Example& example) {
  const auto top_starts = ranked(starts, count), top_ends = ranked(ends, count);
  decoder.add({top_starts, top_ends, starts[0], ends[0]}, example);
}

// The windows of a group in order, indexed by the number of their example.
struct Windows {
  std::shared_ptr<const data::Tokenizer> tokenizer;
  std::vector<std::vector<data::Example>> examples;
  std::vector<std::string> ids;
  std::vector<std::int64_t> first_rows;  // of each example's windows among those of the group
  bool lower_case = true;
};

Windows windows_of(const test::GoldenFile& file, const std::string& path, const std::filesystem::path& data) {
  const std::size_t cut = path.rfind('/');
  const std::string group = path.substr(0, cut), setting = path.substr(cut + 1);
  const PrepareConfig config = test::golden_squad_config(file, group, setting);
  const std::string vocab = file.string_attribute(path, "vocab");
  const SquadPreparation preparation(config, test::golden_tokenizer(data, vocab, config.do_lower_case));
  Windows windows;
  windows.lower_case = config.do_lower_case;
  std::int64_t rows = 0;
  windows.tokenizer = test::golden_tokenizer(data, vocab, config.do_lower_case);
  for (const auto& record : test::golden_squad_records(file, group)) {
    prepare::Converted converted = preparation.convert(record);
    if (converted.faults.rejected() || converted.faults.dropped()) continue;
    windows.ids.push_back(converted.id);
    windows.first_rows.push_back(rows);
    rows += std::ssize(converted.examples);
    windows.examples.push_back(std::move(converted.examples));
  }
  return windows;
}

void require_list(const Json& golden, const std::vector<ListedAnswer>& ours) {
  REQUIRE(golden.size() == ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CAPTURE(i);
    test::require_keys(golden[i], {"text", "probability", "start_logit", "end_logit"});
    REQUIRE(golden[i].at("text") == ours[i].text);
    REQUIRE(golden[i].at("start_logit").get<double>() == ours[i].start_logit);
    REQUIRE(golden[i].at("end_logit").get<double>() == ours[i].end_logit);
    REQUIRE(std::abs(golden[i].at("probability").get<double>() - ours[i].probability) <= 1e-12);
  }
}

// The logits of one case, and a decoder for each of its questions.
class Case {
 public:
  Case(const test::GoldenFile& file, const std::string& name, const Windows& windows)
      : windows_(windows),
        examples_(file.read<std::int64_t>(name + "/example_index").values),
        window_rows_(file.read<std::int64_t>(name + "/window_row").values),
        starts_(file.read<float>(name + "/start_logits")),
        ends_(file.read<float>(name + "/end_logits")) {
    options_.n_best_size = file.int_attribute(name, "n_best_size");
    options_.max_answer_length = file.int_attribute(name, "max_answer_length");
    REQUIRE(file.int_attribute(name, "do_lower_case") == (windows.lower_case ? 1 : 0));
    REQUIRE(!examples_.empty());
    REQUIRE(starts_.shape.size() == 2);
    REQUIRE(starts_.shape[0] == std::ssize(window_rows_));
    REQUIRE(ends_.shape == starts_.shape);
    const auto pads = file.string_attribute(name, "pad_logits");
    if (pads != "random") require_pads(std::stof(pads));
  }

  // Calls visit(example, id, decoded) for each question in order.
  template <typename Visit>
  std::size_t for_each(bool version_2, double threshold, const Visit& visit) const {
    DecodeOptions options = options_;
    options.version_2 = version_2;
    options.null_score_diff_threshold = threshold;
    std::size_t row = 0;
    for (const std::int64_t example : examples_) {
      QuestionDecoder decoder(options, windows_.tokenizer);
      std::int64_t window_row = windows_.first_rows.at(static_cast<std::size_t>(example));
      for (const data::Example& window : windows_.examples[static_cast<std::size_t>(example)]) {
        REQUIRE(window_rows_.at(row) == window_row++);
        add_window(decoder, logits(starts_, row), logits(ends_, row), options.n_best_size, window);
        ++row;
      }
      visit(example, windows_.ids[static_cast<std::size_t>(example)], decoder.decode());
    }
    return row;
  }
  std::size_t rows() const { return static_cast<std::size_t>(starts_.shape[0]); }
  std::size_t windows_of(std::int64_t example) const {
    return windows_.examples.at(static_cast<std::size_t>(example)).size();
  }

 private:
  // Behind a window's tokens both logits are `pad`.
  void require_pads(float pad) const {
    std::size_t row = 0;
    for (const std::int64_t example : examples_) {
      for (const data::Example& window : windows_.examples.at(static_cast<std::size_t>(example))) {
        const auto tokens = std::ssize(std::get<std::vector<std::int64_t>>(window.at("token_ids")));
        for (const auto* array : {&starts_, &ends_}) {
          const Floats all = logits(*array, row);
          REQUIRE(tokens <= std::ssize(all));
          REQUIRE(std::all_of(all.begin() + tokens, all.end(), [&](float logit) { return logit == pad; }));
        }
        ++row;
      }
    }
  }

  static Floats logits(const test::GoldenArray<float>& array, std::size_t row) {
    REQUIRE(row < static_cast<std::size_t>(array.shape[0]));
    const auto width = static_cast<std::size_t>(array.shape[1]);
    const auto begin = array.values.begin() + static_cast<std::ptrdiff_t>(row * width);
    return {begin, begin + static_cast<std::ptrdiff_t>(width)};
  }

  const Windows& windows_;
  DecodeOptions options_;
  std::vector<std::int64_t> examples_, window_rows_;
  test::GoldenArray<float> starts_, ends_;
};

using Decoded = std::map<std::string, DecodedQuestion>;  // by id; of equal ids the last result counts

// Compares answers and lists: the same ids on both sides.
void require_answers(const Json& golden, const Decoded& ours) {
  Json answers = Json::object();
  for (const auto& [id, decoded] : ours) answers[id] = decoded.answer;
  REQUIRE(golden.at("predictions") == answers);
  REQUIRE(golden.at("nbest").size() == ours.size());
  for (const auto& [id, decoded] : ours) {
    CAPTURE(id);
    require_list(golden.at("nbest").at(id), decoded.n_best);
  }
}

std::int64_t compare_version_1(const Case& one, const Json& golden) {
  test::require_keys(golden, {"predictions", "nbest", "stops"});
  CHECK(golden.at("stops").empty());  // without null odds the reference has nothing to stop on
  Decoded last;
  const std::size_t rows =
      one.for_each(false, 0, [&](std::int64_t, const std::string& id, const DecodedQuestion& d) { last[id] = d; });
  REQUIRE(rows == one.rows());
  require_answers(golden, last);
  return std::ssize(last);
}

// Examples on which the reference stops, with the exception: it has no window, or no text in its list.
std::map<std::int64_t, std::string> stops_of(const Case& one, const Json& golden) {
  std::map<std::int64_t, std::string> stops;
  for (const Json& stop : golden.at("stops")) {
    test::require_keys(stop, {"example_index", "qas_id", "exception"});
    const auto example = stop.at("example_index").get<std::int64_t>();
    CHECK(stop.at("exception") == (one.windows_of(example) == 0 ? "IndexError" : "AttributeError"));
    stops[example] = stop.at("qas_id");
  }
  REQUIRE(stops.size() == golden.at("stops").size());
  return stops;
}

std::int64_t compare_version_2(const Case& one, const Json& golden) {
  test::require_keys(golden, {"predictions", "nbest", "null_odds", "predictions_at_threshold", "stops"});
  const std::map<std::int64_t, std::string> stops = stops_of(one, golden);
  Decoded last;
  std::size_t stopped = 0;
  one.for_each(true, 0, [&](std::int64_t example, const std::string& id, const DecodedQuestion& decoded) {
    if (!stops.contains(example)) {
      last[id] = decoded;
      return;
    }
    ++stopped;
    CHECK(stops.at(example) == id);
    CHECK(decoded.answer.empty());  // the published program ends here
    CHECK(!decoded.null_odds);
  });
  CHECK(stopped == stops.size());
  require_answers(golden, last);
  REQUIRE(golden.at("null_odds").size() == last.size());
  for (const auto& [id, decoded] : last) {
    CAPTURE(id);
    REQUIRE(golden.at("null_odds").at(id).get<double>() == decoded.null_odds.value());
  }
  CHECK(!golden.at("predictions_at_threshold").empty());
  for (const auto& [threshold, expected] : golden.at("predictions_at_threshold").items()) {
    CAPTURE(threshold);
    Json answers = Json::object();
    one.for_each(true, std::stod(threshold),
                 [&](std::int64_t example, const std::string& id, const DecodedQuestion& d) {
                   if (!stops.contains(example)) answers[id] = d.answer;
                 });
    REQUIRE(expected == answers);
  }
  return std::ssize(last);
}

}  // namespace

TEST_CASE("answers, lists of answers and null odds equal the published program's", "[squad][golden]") {
  ops::register_cpu_ops();
  const auto data = test::real_data_folder();
  std::int64_t questions = 0;
  for (const auto& path : test::golden_named("squad_decode", ".h5")) {
    if (!data) break;
    const test::GoldenFile file(path);
    const Json golden = read_json_file(path.parent_path() / (path.stem().string() + ".json"));
    const test::GoldenFile features(path.parent_path() / file.string_attribute("", "features_file"));
    test::require_keys(golden, {"cases", "final_text"});
    test::require_keys(golden.at("cases"), file.groups());
    std::map<std::string, Windows> windows;
    for (const std::string& name : file.groups()) {
      CAPTURE(name);
      test::require_keys(golden.at("cases").at(name), {"v1", "v2"});
      const std::string group = file.string_attribute(name, "features_group");
      if (!windows.contains(group)) windows[group] = windows_of(features, group, *data);
      const Case one(file, name, windows.at(group));
      questions += compare_version_1(one, golden.at("cases").at(name).at("v1"));
      questions += compare_version_2(one, golden.at("cases").at(name).at("v2"));
    }
    file.require_all_read("", {{"@content", "a description"}, {"*@style", "a description of the logits"}});
    CHECK(!golden.at("final_text").empty());
    for (const Json& text : golden.at("final_text")) {
      INFO(text.dump());
      test::require_keys(text, {"pred", "orig", "do_lower_case", "result"});
      CHECK(text::recovered_text(text.at("pred").get<std::string>(), text.at("orig").get<std::string>(),
                                 text.at("do_lower_case").get<bool>()) == text.at("result").get<std::string>());
    }
    std::printf("%s: %lld questions equal\n", path.filename().c_str(), static_cast<long long>(questions));
  }
  if (questions == 0) test::skip("no golden SQuAD decodes");
}

namespace {

// The pieces of the golden case, spelled as a vocabulary; ids are their lines.
std::shared_ptr<const data::Tokenizer> vocabulary_of(const std::vector<std::string>& pieces) {
  std::string lines = "[UNK]\n[CLS]\n[SEP]\n";
  std::vector<std::string> seen;
  for (const std::string& piece : pieces) {
    if (test::has_name(seen, piece)) continue;
    seen.push_back(piece);
    lines += piece + "\n";
  }
  const test::TemporaryFolder folder;
  test::write_file(folder / "vocab.txt", lines);
  return data::load_tokenizer(folder / "vocab.txt");
}

// The windows of the golden case, which must be those that are cut from its pieces with the length of the first one and
// the stride to the second one.
std::vector<Window> golden_windows(const test::GoldenFile& file, const std::string& group) {
  const auto pieces = std::ssize(file.read_strings(group + "/pieces"));
  const auto spans = file.read<std::int64_t>(group + "/windows").values;
  REQUIRE(spans.size() >= 2);
  const std::int64_t length = spans[1], stride = spans.size() > 2 ? spans[2] - spans[0] : length;
  REQUIRE(length >= 1);
  REQUIRE(stride >= 1);
  const std::vector<Window> windows = cut_windows(pieces, length, stride);
  std::vector<std::int64_t> cut;
  for (const Window& window : windows) cut.insert(cut.end(), {window.start, window.length});
  REQUIRE(spans == cut);
  return windows;
}

// Requires a logit of each token: [CLS], the question, [SEP], the window, [SEP].
void require_logits(const std::vector<Window>& windows, std::int64_t question, const std::vector<Floats>& logits) {
  REQUIRE(logits.size() == windows.size());
  for (std::size_t w = 0; w < windows.size(); ++w) {
    CAPTURE(w);
    REQUIRE(std::ssize(logits[w]) == question + 3 + windows[w].length);
  }
}

data::Example window_of(const test::GoldenFile& file, const data::Tokenizer& tokenizer, std::int64_t start,
                        std::int64_t length, const std::vector<std::int64_t>& best, std::int64_t number) {
  const auto pieces = file.read_strings("squad/decode/pieces");
  const auto words = file.read<std::int64_t>("squad/decode/piece_to_word").values;
  const auto document = file.read_strings("squad/decode/document_words");
  REQUIRE(words.size() == pieces.size());
  for (const std::int64_t word : words) REQUIRE((word >= 0 && word < std::ssize(document)));
  const auto front = static_cast<std::size_t>(file.int_attribute("squad/decode", "query_pieces") + 2);
  std::vector<std::int64_t> ids(front, 1), token_words(front, -1), max_context(front, 0);
  for (auto i = static_cast<std::size_t>(start); i < static_cast<std::size_t>(start + length); ++i) {
    ids.push_back(tokenizer.piece_id(pieces[i]));
    token_words.push_back(words[i]);
    max_context.push_back(best[i] == number ? 1 : 0);
  }
  ids.push_back(2);
  token_words.push_back(-1);
  max_context.push_back(0);
  return {{"id", std::string("golden")},  {"token_ids", ids},  {"token_words", token_words},
          {"max_context", max_context},   {"words", document}, {"first_word", std::int64_t{0}},
          {"lower_case", std::int64_t{1}}};
}

void require_golden(const test::GoldenFile& file, const std::string& group, const DecodedQuestion& decoded) {
  const auto texts = file.read_strings(group + "/text");
  const auto places = file.read<std::int64_t>(group + "/window_start_end").values;
  const auto starts = file.read<double>(group + "/start_logit").values,
             ends = file.read<double>(group + "/end_logit").values;
  const auto probabilities = file.read<double>(group + "/probability").values;
  REQUIRE(decoded.n_best.size() == texts.size());
  REQUIRE(places.size() == 3 * texts.size());
  REQUIRE(starts.size() == texts.size());
  REQUIRE(ends.size() == texts.size());
  REQUIRE(probabilities.size() == texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(i);
    const ListedAnswer& ours = decoded.n_best[i];
    CHECK(ours.text == texts[i]);
    CHECK(std::vector<std::int64_t>{ours.window, ours.start, ours.end} ==
          std::vector<std::int64_t>(places.begin() + static_cast<std::ptrdiff_t>(3 * i),
                                    places.begin() + static_cast<std::ptrdiff_t>(3 * i + 3)));
    CHECK(std::abs(ours.start_logit - starts[i]) < 1e-6);  // the golden logits are doubles, a model's are floats
    CHECK(std::abs(ours.end_logit - ends[i]) < 1e-6);
    CHECK(std::abs(ours.probability - probabilities[i]) < 1e-6);
  }
  CHECK(decoded.best_text == file.read_strings(group + "/best_non_null").at(0));
}

constexpr std::string_view kAnswerAt = "answer_at_threshold_";

// "0", "minus5" or "plus5"
double threshold_named(const std::string& name) {
  for (const auto& [word, sign] : std::map<std::string, double>{{"minus", -1}, {"plus", 1}}) {
    if (name.starts_with(word)) return sign * std::stod(name.substr(word.size()));
  }
  return std::stod(name);
}

}  // namespace

TEST_CASE("decoding over overlapping windows equals the golden case", "[squad][golden]") {
  ops::register_cpu_ops();
  std::int64_t files = 0;
  for (const auto& path : test::golden_named("dense_reference", ".h5")) {
    const test::GoldenFile file(path);
    if (!file.has("squad/decode")) continue;
    ++files;
    const std::string group = "squad/decode";
    const auto tokenizer = vocabulary_of(file.read_strings(group + "/pieces"));
    const auto starts = file.read_ragged<float>(group + "/start_logits");
    const auto ends = file.read_ragged<float>(group + "/end_logits");
    const std::vector<Window> windows = golden_windows(file, group);
    const auto best = best_windows(windows, std::ssize(file.read_strings(group + "/pieces")));
    require_logits(windows, file.int_attribute(group, "query_pieces"), starts);
    require_logits(windows, file.int_attribute(group, "query_pieces"), ends);
    DecodeOptions options;
    options.n_best_size = file.int_attribute(group, "n_best");
    options.max_answer_length = file.int_attribute(group, "max_answer_length");
    const auto decode = [&](bool version_2, double threshold) {
      options.version_2 = version_2;
      options.null_score_diff_threshold = threshold;
      QuestionDecoder decoder(options, tokenizer);
      for (std::size_t w = 0; w < windows.size(); ++w) {
        const auto number = static_cast<std::int64_t>(w);
        add_window(decoder, starts[w], ends[w], options.n_best_size,
                   window_of(file, *tokenizer, windows[w].start, windows[w].length, best, number));
      }
      return decoder.decode();
    };
    require_golden(file, group + "/v1", decode(false, 0));
    const DecodedQuestion decoded = decode(true, 0);
    require_golden(file, group + "/v2", decoded);
    CHECK(std::abs(decoded.null_odds.value() - file.read<double>(group + "/v2/null_score_diff").values[0]) < 1e-5);
    std::size_t thresholds = 0;
    for (const std::string& name : file.data_sets(group + "/v2")) {
      if (!name.starts_with(kAnswerAt)) continue;
      CAPTURE(name);
      ++thresholds;
      const double threshold = threshold_named(name.substr(kAnswerAt.size()));
      CHECK(decode(true, threshold).answer == file.read_strings(group + "/v2/" + name).at(0));
    }
    CHECK(thresholds > 0);
    file.require_all_read(group);
  }
  if (files == 0) test::skip("no golden decoding");
}

TEST_CASE("texts of answers equal the golden ones", "[squad][golden]") {
  std::int64_t cases = 0;
  for (const auto& path : test::golden_named("dense_reference", ".h5")) {
    const test::GoldenFile file(path);
    if (!file.has("squad/final_text")) continue;
    const std::string group = "squad/final_text/";
    const auto predicted = file.read_strings(group + "predicted"), original = file.read_strings(group + "original"),
               results = file.read_strings(group + "result");
    REQUIRE(predicted.size() == results.size());
    REQUIRE(original.size() == results.size());
    for (std::size_t i = 0; i < results.size(); ++i, ++cases) {
      CAPTURE(predicted[i], original[i]);
      CHECK(text::recovered_text(predicted[i], original[i]) == results[i]);
    }
    file.require_all_read("squad/final_text");
  }
  if (cases == 0) test::skip("no golden texts of answers");
}
