// BLEU against the numbers of sacreBLEU: every set and option of group `bleu`, its published test cases, and outputs of
// WMT'17.
#include <fmt/format.h>

#include <map>

#include "data/readers/text_lines.h"
#include "data/text/bleu_words.h"
#include "etc_core/base/json.h"
#include "tasks/translation/bleu.h"
#include "tests/golden/golden_group.h"

namespace etc::test {
namespace {

using namespace etc::translation;
using Lines = std::vector<std::string>;

constexpr double kTolerance = 1e-6;  // percent; the accuracy stated by the files

BleuOptions options_of(const std::string& name) {
  BleuOptions options;
  static const std::map<std::string, BleuWords> kWords{{"tokenize_13a", options.words},
                                                       {"tokenize_none", BleuWords::blanks},
                                                       {"tokenize_char", BleuWords::characters},
                                                       {"tokenize_intl", BleuWords::international}};
  static const std::map<std::string, Smoothing> kSmoothings{{"smooth_exp", Smoothing::exponential},
                                                            {"smooth_none", Smoothing::none},
                                                            {"smooth_floor", Smoothing::floor},
                                                            {"smooth_addk", Smoothing::add_k}};
  if (name == "lowercase") {
    options.lower_case = true;
  } else if (kWords.count(name) > 0) {
    options.words = kWords.at(name);
  } else if (kSmoothings.count(name) > 0) {
    options.smoothing = kSmoothings.at(name);
  } else if (name != "default") {
    FAIL("BLEU with unknown options: " << name);
  }
  return options;
}

// The smoothing with this name in sacreBLEU.
Smoothing smoothing_of(const std::string& name) {
  static const std::map<std::string, Smoothing> kSmoothings{{"exp", Smoothing::exponential},
                                                            {"floor", Smoothing::floor},
                                                            {"add-k", Smoothing::add_k},
                                                            {"none", Smoothing::none}};
  return kSmoothings.at(name);
}

void check_numbers(const std::vector<double>& ours, const std::vector<double>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(std::abs(ours[i] - theirs[i]) < kTolerance);
}

std::vector<Lines> references_of(const GoldenFile& file, const std::string& set) {
  std::vector<Lines> references;
  for (int r = 0; file.has(fmt::format("bleu/{}/reference{}", set, r)); ++r) {
    references.push_back(file.read_strings(fmt::format("bleu/{}/reference{}", set, r)));
  }
  return references;
}

void check_set(const GoldenFile& file, const std::string& set) {
  const Lines hypotheses = file.read_strings("bleu/" + set + "/hypotheses");
  const std::vector<Lines> references = references_of(file, set);
  CHECK(!file.groups("bleu/" + set).empty());
  for (const std::string& name : file.groups("bleu/" + set)) {
    CAPTURE(set, name);
    const std::string group = "bleu/" + set + "/" + name;
    const BleuOptions options = options_of(name);
    const Bleu bleu = corpus_bleu(hypotheses, references, options);
    CHECK(std::abs(bleu.score - file.read<double>(group + "/score").values[0]) < kTolerance);
    CHECK(std::abs(bleu.brevity_penalty - file.real_attribute(group + "/score", "bp")) < 1e-12);
    CHECK(bleu.system_length == file.int_attribute(group + "/score", "sys_len"));
    CHECK(bleu.reference_length == file.int_attribute(group + "/score", "ref_len"));
    CHECK(bleu_signature(options, references.size(), "2.6.0") == file.string_attribute(group + "/score", "signature"));
    check_numbers(bleu.precisions, file.read<double>(group + "/precisions").values);
    check_numbers(bleu.matches, file.read<double>(group + "/counts").values);
    check_numbers(bleu.totals, file.read<double>(group + "/totals").values);
  }
}

Lines lines_of(const std::filesystem::path& path) {
  data::ByteStream stream(path);
  data::TextLines text(stream);
  Lines lines;
  for (std::string line; text.append(line); line.clear()) lines.emplace_back(data::without_line_end(line));
  return lines;
}

TEST_CASE("corpus scores, counts, precisions and signatures are sacreBLEU's", "[golden][translation]") {
  for_each_file_with("bleu", [](const GoldenFile& file) {
    int sets = 0;
    for (const std::string& set : file.groups("bleu")) {
      if (set == "tokenizer_13a" || set == "compound_split") continue;  // below
      check_set(file, set);
      ++sets;
    }
    CHECK(sets > 0);
    file.require_all_read("bleu",
                          {{"bleu/tokenizer_13a*", "compared below"}, {"bleu/compound_split*", "compared below"}});
  });
}

TEST_CASE("the 13a rules and the compound split cut as published", "[golden][translation]") {
  for_each_file_with("bleu", [](const GoldenFile& file) {
    const auto check = [&](const std::string& group, std::string (*split)(std::string_view)) {
      const Lines input = file.read_strings(group + "/input"), output = file.read_strings(group + "/output");
      REQUIRE(input.size() == output.size());
      REQUIRE(!input.empty());
      for (std::size_t i = 0; i < input.size(); ++i) CHECK(split(input[i]) == output[i]);
    };
    check("bleu/tokenizer_13a", data::split_13a);
    check("bleu/compound_split", data::split_compounds);
    Lines hypotheses = file.read_strings("bleu/one_reference/hypotheses");
    std::vector<Lines> references = references_of(file, "one_reference");
    BleuOptions plain;
    plain.words = BleuWords::blanks;
    plain.smoothing = Smoothing::none;
    const auto score = [&](const char* name) {
      return file.read<double>(std::string("bleu/compound_split/") + name).values[0];
    };
    CHECK(std::abs(corpus_bleu(hypotheses, references, plain).score - score("plain_score")) < kTolerance);
    for (std::string& line : hypotheses) line = data::split_compounds(line);
    for (std::string& line : references[0]) line = data::split_compounds(line);
    CHECK(std::abs(corpus_bleu(hypotheses, references, plain).score - score("compound_split_score")) < kTolerance);
    for (const char* const group : {"bleu/tokenizer_13a", "bleu/compound_split"}) file.require_all_read(group);
  });
}

TEST_CASE("the published test cases of sacreBLEU have their scores", "[golden][translation]") {
  const auto folder = real_data_folder();
  if (!folder) return skip("no real data");
  const Json cases = read_json_file(*folder / "golden" / "sacrebleu_cases.json");
  REQUIRE(!cases.empty());
  for (const Json& one : cases) {
    CAPTURE(json_line(one));
    const Json& given = one["options"];
    BleuOptions options;
    if (given.contains("tokenize")) options = options_of("tokenize_" + given["tokenize"].get<std::string>());
    options.smoothing = smoothing_of(given.value("smooth_method", "exp"));
    options.lower_case = given.value("lowercase", false);
    options.smooth_value = given.value("smooth_value", 0.0);
    options.max_order = given.value("max_ngram_order", 4);
    options.effective_order = given.value("raw", false);
    auto references = one["refs"].get<std::vector<Lines>>();
    const Lines hypotheses = one["hyps"].get<Lines>();
    const Bleu bleu = corpus_bleu(hypotheses, references, options);
    CHECK(std::abs(bleu.score - one["bleu"].get<double>()) < one.value("tolerance", kTolerance));
  }
}

TEST_CASE("system outputs of WMT'17 have their scores, counts and lengths", "[golden][translation]") {
  const auto folder = real_data_folder();
  if (!folder) return skip("no real data");
  const Json cases = read_json_file(*folder / "golden" / "sacrebleu_wmt17.json");
  REQUIRE(!cases.empty());
  for (const Json& one : cases) {
    CAPTURE(json_line(one));
    BleuOptions options = options_of("tokenize_" + one["tokenize"].get<std::string>());
    options.lower_case = one["lowercase"];
    options.smoothing = smoothing_of(one["smooth"].get<std::string>());
    const std::vector<Lines> references = {lines_of(*folder / "golden" / one["reference"].get<std::string>())};
    const Bleu bleu =
        corpus_bleu(lines_of(*folder / "golden" / one["hypothesis"].get<std::string>()), references, options);
    CHECK(std::abs(bleu.score - one["bleu"].get<double>()) < kTolerance);
    CHECK(std::abs(bleu.brevity_penalty - one["bp"].get<double>()) < 1e-12);
    CHECK(bleu.system_length == one["sys_len"]);
    CHECK(bleu.reference_length == one["ref_len"]);
    check_numbers(bleu.precisions, one["precisions"].get<std::vector<double>>());
    check_numbers(bleu.matches, one["counts"].get<std::vector<double>>());
    check_numbers(bleu.totals, one["totals"].get<std::vector<double>>());
  }
}

}  // namespace
}  // namespace etc::test
