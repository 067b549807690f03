// Text files → data sets of every objective; the same bytes for any number of threads, and after a kill.
#include <map>
#include <set>

#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "tasks/pretrain/batch.h"
#include "tasks/pretrain/mask_settings.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/tasks/pretrain/prepare_scene.h"
#include "tests/tasks/stopped_preparation.h"

namespace etc::test {
namespace {

constexpr std::int64_t kVocabulary = 8 + 2 * 26;
const Numbers kSpecial = {4, 5, 6};

std::int64_t letter(char c, bool inside = false) {
  return 8 + 2 * (c - 'a') + (inside ? 1 : 0);
}

// Documents of sentences of words of one to three letters.
std::string random_text(std::int64_t documents, std::uint64_t seed) {
  pretrain::CounterDraws draws(seed);
  std::string text;
  for (std::int64_t d = 0; d < documents; ++d) {
    for (std::int64_t sentences = draws.between(1, 14); sentences > 0; --sentences) {
      for (std::int64_t words = draws.between(1, 9); words > 0; --words) {
        for (std::int64_t letters = draws.between(1, 3); letters > 0; --letters) {
          text += static_cast<char>('a' + draws.between(0, 25));
        }
        text += ' ';
      }
      text += ".\n";
    }
    text += "\n";
  }
  return text;
}

// The bytes of a data set prepared with this number of threads.
std::string bytes_with(int threads, PretrainScene& scene) {
  const int before = thread_count();
  set_thread_count(threads);
  scene.run();
  set_thread_count(before);
  return scene.bytes("out.h5");
}

}  // namespace

TEST_CASE("a text becomes pairs of segments with their masks", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"max_seq_length", 32}, {"dupe_factor", 3}};
  const auto examples = scene.prepared(random_text(40, 1));
  CHECK(scene.counts.records == 40);
  CHECK(scene.counts.examples == std::ssize(examples));
  std::set<std::string> ids;
  Numbers labels;
  for (const data::Example& example : examples) {
    check_example(example, 32, kVocabulary, kSpecial);
    CHECK(ids.insert(std::get<std::string>(example.at("id"))).second);
    labels.push_back(number_of(example, "next_sentence_label"));
    const std::int64_t n = std::ssize(numbers_of(example, "long_token_ids"));
    CHECK(std::ssize(numbers_of(example, "masked_positions")) == pretrain::number_to_mask(n, 0.15, 5));
    CHECK(numbers_of(example, "sentence_lengths").empty());
  }
  CHECK(std::count(labels.begin(), labels.end(), 0) > std::ssize(labels) / 8);
  CHECK(std::count(labels.begin(), labels.end(), 1) > std::ssize(labels) / 2);
  CHECK_FALSE(std::is_sorted(examples.begin(), examples.end(), [](const auto& a, const auto& b) {
    return number_of(a, "record_index") < number_of(b, "record_index");
  }));
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out.h5.parts"));
}

TEST_CASE("every copy of the text is cut and masked in another way", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"max_seq_length", 24}, {"dupe_factor", 2}};
  std::map<std::string, std::string> copies[2];  // document and number → pieces
  for (const data::Example& example : scene.prepared(random_text(60, 3))) {
    const auto id = std::get<std::string>(example.at("id"));
    copies[id[0] - '0'][id.substr(2)] = Json(numbers_of(example, "long_token_ids")).dump();
  }
  std::int64_t equal = 0;
  for (const auto& [id, pieces] : copies[0]) equal += copies[1].contains(id) && copies[1][id] == pieces ? 1 : 0;
  CHECK(copies[1].size() > 100);
  CHECK(equal < std::ssize(copies[0]) / 4);
}

TEST_CASE("one segment holds the sentences that fit, and dynamic masks are left to training", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm"}, {"max_seq_length", 8}, {"dynamic_masking", true}};
  const auto examples = scene.prepared("ab c .\nd\ne f g h\n\nxyz xyz xyz\n");
  std::set<Numbers> ids, kinds;
  for (const data::Example& example : examples) {
    check_example(example, 8, kVocabulary, kSpecial);
    CHECK(numbers_of(example, "masked_positions").empty());
    CHECK(number_of(example, "next_sentence_label") == -1);
    ids.insert(numbers_of(example, "long_token_ids"));
    kinds.insert(numbers_of(example, "piece_kinds"));
  }
  const auto x = letter('x'), y = letter('y', true), z = letter('z', true);
  CHECK(ids == std::set<Numbers>{{4, letter('a'), letter('b', true), letter('c'), 7, letter('d'), 5},
                                 {4, letter('e'), letter('f'), letter('g'), letter('h'), 5},
                                 {4, x, y, z, x, y, z, 5},
                                 {4, x, y, z, 5}});  // the sentence of nine pieces is cut
  CHECK(kinds.contains({2, 1, 0, 1, 1, 1, 2}));
  CHECK(scene.counts.codes.at("warn sentence_cut") == 1);
}

TEST_CASE("contrastive coding has sentences, hidden ones, and no piece of them masked", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm_cpc"}, {"max_seq_length", 40}, {"global_seq_len", 5}, {"dupe_factor", 2}};
  const auto examples = scene.prepared(random_text(60, 5));
  CHECK(scene.counts.dropped > 0);  // documents of fewer than 7 sentences
  CHECK(scene.counts.records == 60);
  CHECK(scene.counts.dropped == scene.counts.codes.at("drop document_short"));
  REQUIRE(examples.size() > 20);
  for (const data::Example& example : examples) {
    check_example(example, 40, kVocabulary, kSpecial);
    const Numbers& lengths = numbers_of(example, "sentence_lengths");
    const Numbers& hidden = numbers_of(example, "cpc_sentences");
    CHECK((lengths.size() >= 2 && lengths.size() <= 5));
    CHECK(hidden.size() == 1);
    std::int64_t begin = 1;
    for (std::int64_t s = 0; s < hidden[0]; ++s) begin += lengths[static_cast<std::size_t>(s)];
    const std::int64_t end = begin + lengths[static_cast<std::size_t>(hidden[0])];
    for (const std::int64_t p : numbers_of(example, "masked_positions")) CHECK((p < begin || p >= end));
    CHECK(numbers_of(example, "piece_kinds").at(static_cast<std::size_t>(begin)) == pretrain::kBegins);
  }
}

TEST_CASE("a text whose words are all too long to be masked stays so while training", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm"}, {"dupe_factor", 1}};
  const auto examples = scene.prepared("abcdefghijklmnop\n");  // one word of 16 pieces, of which 3 may be masked
  REQUIRE(examples.size() == 1);
  CHECK(numbers_of(examples[0], "masked_positions").empty());
  const data::LoadedExample loaded{0, 0, examples[0]};
  for (const char* whole_words : {"true", "false"}) {
    const pretrain::Options options =
        pretrain::read_options({{"objective", "mlm"}, {"whole_word_mask", parse_json(whole_words, "test")}});
    CHECK(pretrain::masks_of(loaded, options, {6, kVocabulary}).positions.empty());
  }
}

TEST_CASE("contrastive coding predicts its share of the pieces, whatever max_predictions_per_seq says", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm_cpc"}, {"max_seq_length", 40}, {"whole_word_mask", false}};
  const auto text = random_text(40, 5);
  const auto examples = scene.prepared(text);
  scene.settings["max_predictions_per_seq"] = 1;
  log::also_to_file(scene.folder / "log");
  CHECK(scene.prepared(text) == examples);
  CHECK_THAT(scene.bytes("log"), Catch::Contains("max_predictions_per_seq 1 has no effect: mlm_cpc has no such limit"));
}

TEST_CASE("masks drawn while training have the settings of their data, unless the run gives others", "[pretrain]") {
  PretrainScene scene;
  std::string words;
  for (int i = 0; i < 50; ++i) words += "ab ";  // 100 pieces, with [CLS] and [SEP] 102
  // The positions of one example that is prepared with these settings and fed with these options.
  const auto positions = [&](Json settings, const Json& options, bool states = true) {
    settings.update({{"objective", "mlm"}, {"max_seq_length", 102}, {"dynamic_masking", true}});
    scene.settings = settings;
    const data::Example stored = scene.prepared(words + "\n").at(0);
    const data::Example example = states ? scene.examples_with_settings().at(0) : stored;
    Json section = pretrain::fields().defaults();
    section.update({{"objective", "mlm"}});
    section.update(options);
    return pretrain::masks_of({0, 0, example}, pretrain::read_options(section), {6, kVocabulary}).positions;
  };
  const Json none = Json::object(), pieces = {{"whole_word_mask", false}};
  CHECK(positions(none, none).size() == 14);  // of 15 wanted: whole words
  CHECK(positions({{"masked_lm_prob", 0.5}}, none).size() == 50);
  CHECK(positions({{"masked_lm_prob", 0.5}}, {{"masked_lm_prob", 0.25}}).size() == 26);
  CHECK(positions({{"masked_lm_prob", 0.5}}, none, false).size() == 14);  // the data do not state it
  CHECK(positions(pieces, none).size() == 15);
  CHECK(positions(pieces, {{"whole_word_mask", true}}).size() == 14);
  CHECK(positions({{"max_predictions_per_seq", 4}}, none).size() == 4);
  CHECK(positions({{"max_predictions_per_seq", 4}}, {{"max_predictions_per_seq", 6}}).size() == 6);
  // A limit that did not limit the preparation does not limit another share, either.
  CHECK(positions(none, {{"masked_lm_prob", 0.5}}).size() == 50);
}

TEST_CASE("sentences hidden while training are as many as the settings of their data say", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm_cpc"}, {"dynamic_masking", true}, {"cpc_sentence_prob", 0.5}};
  scene.prepared("a b\nc d\ne f\ng h\ni j\nk l\nm n\no p\n");
  const data::LoadedExample example{0, 0, scene.examples_with_settings().at(0)};
  const auto hidden = [&](const Json& options) {
    Json section = pretrain::fields().defaults();
    section.update({{"objective", "mlm_cpc"}});
    section.update(options);
    return pretrain::masks_of(example, pretrain::read_options(section), {6, kVocabulary}).cpc_sentences.size();
  };
  CHECK(hidden(Json::object()) == 4);
  CHECK(hidden({{"cpc_sentence_prob", 0.25}}) == 2);
}

TEST_CASE("a setting of the run that stored masks contradict is refused, and one they agree with is not",
          "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm"}, {"dupe_factor", 1}};
  const auto text = random_text(40, 5);
  const auto refusal = [&](const Json& options, bool states = true) -> std::string {
    Json section = pretrain::fields().defaults();
    section.update(scene.settings.contains("cpc_sentence_prob") ? Json{{"objective", "mlm_cpc"}}
                                                                : Json{{"objective", "mlm"}});
    section.update(options);
    for (const data::Example& example : states ? scene.examples_with_settings() : scene.examples()) {
      try {
        pretrain::require_followed(example, pretrain::read_options(section), "a.h5");
      } catch (const Error& error) {
        return error.what();
      }
    }
    return "";
  };
  scene.prepared(text);
  CHECK(refusal(Json::object()).empty());
  CHECK(refusal({{"masked_lm_prob", 0.15}, {"whole_word_mask", true}, {"max_predictions_per_seq", 77}}).empty());
  CHECK_THAT(refusal({{"masked_lm_prob", 0.3}}),
             Catch::StartsWith("feed: a.h5: example ") &&
                 Catch::EndsWith(": task.masked_lm_prob: 0.3 cannot be followed, because the masks are stored with the "
                                 "data, drawn with 0.15 (leave the key out, or prepare the data with it or with "
                                 "--dynamic-masking true)"));
  CHECK(refusal({{"masked_lm_prob", 0.3}}, false).empty());  // the data do not state it
  CHECK_THAT(refusal({{"whole_word_mask", false}}), Catch::Contains("task.whole_word_mask: false cannot be followed"));
  CHECK_THAT(refusal({{"max_predictions_per_seq", 1}}), Catch::Contains("task.max_predictions_per_seq: 1 cannot be"));
  scene.settings = {{"objective", "mlm_cpc"}, {"dupe_factor", 1}, {"cpc_sentence_prob", 0.4}};
  scene.prepared(text);
  CHECK(refusal({{"cpc_sentence_prob", 0.4}, {"max_predictions_per_seq", 1}}).empty());
  CHECK(refusal({{"cpc_sentence_prob", 0.15}}).empty());  // as runs of earlier programs say
  CHECK_THAT(refusal({{"cpc_sentence_prob", 0.2}}), Catch::Contains("task.cpc_sentence_prob: 0.2 cannot be followed"));
  // Masks that the run draws follow any setting.
  scene.settings = {{"objective", "mlm"}, {"dynamic_masking", true}};
  scene.prepared(text);
  CHECK(refusal({{"masked_lm_prob", 0.3}, {"whole_word_mask", false}, {"max_predictions_per_seq", 1}}).empty());
}

TEST_CASE("a word divided by the cut of a long sentence begins a second time in the rest of the sentence",
          "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm_cpc"}, {"max_seq_length", 6}, {"min_document_sentences", 0}, {"dupe_factor", 1}};
  const auto examples = scene.prepared("abcdefg\nx\n");  // at most five pieces a sentence
  CHECK(scene.counts.codes.at("warn sentence_cut") == 1);
  std::set<Numbers> lengths, kinds;
  for (const data::Example& example : examples) {
    check_example(example, 6, kVocabulary, kSpecial);
    lengths.insert(numbers_of(example, "sentence_lengths"));
    kinds.insert(numbers_of(example, "piece_kinds"));
  }
  // The rest of two pieces is together with the next sentence; its first piece would otherwise continue a word of
  // another example, or of a hidden sentence.
  CHECK(lengths.contains({2, 1}));
  CHECK(kinds.contains({2, 1, 0, 1}));
}

TEST_CASE("words of a SentencePiece vocabulary begin where its pieces say so", "[pretrain]") {
  const TemporaryFolder folder;
  test::write_file(folder / "spiece.model", sentencepiece_model({{"<unk>", 0, PieceType::unknown},
                                                                 {"[CLS]", 0, PieceType::user_defined},
                                                                 {"[SEP]", 0, PieceType::user_defined},
                                                                 {"[MASK]", 0, PieceType::user_defined},
                                                                 {"\u2581a", -1},
                                                                 {"b", -1},
                                                                 {"\u2581", -2}}));
  const auto tokenizer = data::load_tokenizer(folder / "spiece.model");
  const pretrain::MaskVocabulary pieces(*tokenizer);
  CHECK((pieces.cls == 1 && pieces.sep == 2 && pieces.mask == 3));
  using enum pretrain::PieceKind;
  CHECK(pieces.kinds ==
        std::vector<std::uint8_t>{kContinues, kSpecial, kSpecial, kContinues, kBegins, kContinues, kBegins});
  CHECK(tokenizer->encode_ids("ab b") == std::vector<std::int32_t>{4, 5, 6, 5});
}

TEST_CASE("any number of threads gives equal bytes", "[pretrain]") {
  for (const char* objective : {"mlm_nsp", "mlm_cpc"}) {
    CAPTURE(objective);
    PretrainScene scene;
    scene.settings = {{"objective", objective}, {"max_seq_length", 48}, {"dupe_factor", 2}};
    scene.write("in.txt", random_text(300, 8));
    const std::string one = bytes_with(1, scene);
    CHECK(one == bytes_with(3, scene));
    scene.settings["random_seed"] = 1;
    CHECK(one != bytes_with(3, scene));
  }
}

TEST_CASE("a document goes on in the next file unless files end documents", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm"}, {"max_seq_length", 64}, {"dupe_factor", 1}};
  scene.write("a.txt", "a\nb\n\nc\n");
  scene.write("b.txt", "d\n\ne");
  scene.write("c.txt", "\n\nf\n");
  scene.run({"a.txt", "b.txt", "c.txt"});
  CHECK(scene.counts.records == 4);  // ab, cd, e, f
  scene.settings["document_ends"] = "files";
  scene.run({"a.txt", "b.txt", "c.txt"});
  CHECK(scene.counts.records == 3);  // abc, de, f
  std::set<Numbers> ids;
  for (const data::Example& example : scene.examples()) ids.insert(numbers_of(example, "long_token_ids"));
  CHECK(ids == std::set<Numbers>{{4, letter('a'), letter('b'), letter('c'), 5},
                                 {4, letter('d'), letter('e'), 5},
                                 {4, letter('f'), 5}});
}

TEST_CASE("packed files, several files and JSON lines hold the same documents as one text", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"max_seq_length", 48}, {"dupe_factor", 2}};
  const std::string first = random_text(20, 11), second = random_text(25, 12);
  const auto plain = scene.prepared(first + second);
  scene.write("a.gz", gzip(first));
  scene.write("b.txt", second);
  scene.run({"a.gz", "b.txt"}, "two.h5");
  CHECK(scene.examples("two.h5") == plain);
  std::string lines;
  for (std::size_t at = 0; at < (first + second).size();) {
    const std::string text = first + second;
    const std::size_t end = text.find("\n\n", at);
    lines += json_line(Json{{"n", 1}, {"story", text.substr(at, end - at)}}) + "\n";
    at = end + 2;
  }
  scene.write("in.jsonl", lines);
  scene.settings["text_key"] = "story";
  scene.run({"in.jsonl"}, "json.h5");
  CHECK(scene.examples("json.h5") == plain);
}

TEST_CASE("running text is cut into sentences, by lines or by paragraphs", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm_cpc"}, {"min_document_sentences", 0}, {"dupe_factor", 1}};
  const auto lengths = [&](const std::string& lines) {
    scene.settings["lines"] = lines;
    std::vector<Numbers> found;
    for (const data::Example& example : scene.prepared("Ab c. D e f.\nG h\nI j.\n")) {
      found.push_back(numbers_of(example, "sentence_lengths"));
    }
    return found;
  };
  CHECK(lengths("sentences") == std::vector<Numbers>{{8, 2, 3}});
  CHECK(lengths("paragraphs") == std::vector<Numbers>{{4, 4, 2, 3}});
  CHECK(lengths("wrapped") == std::vector<Numbers>{{4, 4, 5}});
}

TEST_CASE("a stopped run goes on behind the files it has read, to equal bytes", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"max_seq_length", 48}, {"dupe_factor", 1}};
  scene.write("a.txt", random_text(50, 21));
  scene.write("b.txt", random_text(50, 22));
  const std::vector<std::string> inputs = {"a.txt", "b.txt"};
  scene.run(inputs, "whole.h5");
  // Stops a run whose report cannot be written, after both files have been cut into pieces.
  const auto stop = [&] {
    const auto pieces = stopped_parts(scene.folder / "out.h5", scene.folder / "out.h5.rejects.jsonl", ".pieces",
                                      [&] { scene.run(inputs); });
    REQUIRE(pieces.size() == 2);
    return pieces;
  };
  stop();
  log::also_to_file(scene.folder / "log");
  scene.run(inputs);
  CHECK(scene.bytes("out.h5") == scene.bytes("whole.h5"));
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out.h5.parts"));
  for (const std::string& input : inputs) {
    CHECK_THAT(scene.bytes("log"), Catch::Contains(input + " is cut into pieces from an earlier run"));
  }
  // The part of a changed text is not used.
  stop();
  scene.write("b.txt", random_text(50, 23));
  scene.run(inputs);
  scene.run(inputs, "whole.h5");
  CHECK(scene.bytes("out.h5") == scene.bytes("whole.h5"));
}

}  // namespace etc::test
