#include "tasks/translation/prepare.h"

#include <algorithm>
#include <utility>

#include "data/readers/parallel_lines.h"
#include "data/text/bleu_words.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/translation/pair_run.h"
#include "tasks/translation/schema.h"

namespace etc::translation {

namespace {

std::int64_t words_in(std::string_view line) {
  const std::string words = data::split_13a(line);
  return words.empty() ? 0 : std::count(words.begin(), words.end(), ' ') + 1;
}

// See PreparationKind::make.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels labels) {
  const PrepareConfig config = prepare_settings().read(settings, "etc prepare");
  auto tokenizer = data::load_tokenizer(vocab);
  if (std::string_view(tokenizer->kind()) != subword_text(config.subword)) {
    fail_usage("etc prepare", "subword: expected {}, but {} is a {} vocabulary (*.bpe, *.words, *.model)",
               subword_text(config.subword), vocab.string(), tokenizer->kind());
  }
  if (config.do_lower_case && !tokenizer->lower_case()) {
    fail_usage("etc prepare", "do_lower_case: {} was learned from text as it is: learn one with --do-lower-case true",
               vocab.string());
  }
  return std::make_unique<TranslationPreparation>(config, std::move(tokenizer), labels);
}

}  // namespace

struct TranslationPreparation::Side {
  std::string_view line;
  std::vector<std::int64_t> ids;  // without </s>
  std::int64_t words = 0;         // 0: not needed
};

TranslationPreparation::TranslationPreparation(const PrepareConfig& config, std::unique_ptr<data::Tokenizer> tokenizer,
                                               prepare::Labels labels)
    : config_(config),
      tokenizer_(std::move(tokenizer)),
      special_(translation::special_ids(*tokenizer_)),
      labels_required_(labels == prepare::Labels::required) {}

const data::Schema& TranslationPreparation::schema() const {
  return translation::schema();
}

Json TranslationPreparation::preprocess_config() const {
  Json stored = prepare_settings().to_json(config_);
  stored.erase("learned_words");  // used for learning only; the vocabulary stores it
  stored.update({{"do_lower_case", tokenizer_->lower_case()}, {"special_ids", json_of(special_)}});
  return stored;
}

std::unique_ptr<data::RecordReader> TranslationPreparation::open_records(data::ByteStream& stream) const {
  return std::make_unique<data::ParallelLines>(stream, std::nullopt);
}

TranslationPreparation::Side TranslationPreparation::read_side(std::string_view line, const char* field,
                                                               prepare::FaultList& faults) const {
  Side side{line, {}, 0};
  if (const auto bad = data::invalid_utf8(line)) {
    faults.reject(field, "utf8_invalid", fmt::format("byte {} of the line is not UTF-8", *bad));
    return side;
  }
  const std::vector<std::int32_t> ids = tokenizer_->encode_ids(line);
  side.ids.assign(ids.begin(), ids.end());
  if (labels_required_ && config_.max_words > 0) side.words = words_in(line);
  return side;
}

// The rules of sections 4 and 14. A pair is dropped for the first reason that applies.
void TranslationPreparation::filter(Side& source, const std::optional<Side>& target, prepare::FaultList& faults) const {
  const std::int64_t most = config_.max_positions - 1;  // without </s>
  for (const Side* side : {&std::as_const(source), target ? &*target : nullptr}) {
    if (side == nullptr) continue;
    const char* field = side == &source ? "source" : "target";
    const std::int64_t pieces = std::ssize(side->ids);
    const auto leave_out = [&](const char* code, const std::string& why) {
      labels_required_ ? faults.drop(field, code, why) : faults.reject(field, code, why);
    };
    if (labels_required_ && pieces == 0) return leave_out("empty_line", "the line has no word");
    if (labels_required_ && config_.max_words > 0 && side->words > config_.max_words) {
      return leave_out("too_many_words",
                       fmt::format("{} words, at most {} (max_words)", side->words, config_.max_words));
    }
    if (labels_required_ && config_.max_pieces > 0 && pieces > config_.max_pieces) {
      return leave_out("too_many_pieces",
                       fmt::format("{} pieces, at most {} (max_pieces)", pieces, config_.max_pieces));
    }
    if (pieces <= most) continue;
    if (side == &source && !labels_required_ && config_.truncate_source) {
      faults.warn_quietly("source", "source_truncated", fmt::format("{} pieces, {} are kept", pieces, most));
      source.ids.resize(static_cast<std::size_t>(most));
      continue;
    }
    return leave_out("too_long",
                     fmt::format("{} pieces with </s>, at most {} (max_positions{})", pieces + 1, config_.max_positions,
                                 labels_required_ ? "" : "; --truncate-source true cuts it"));
  }
  if (!labels_required_ || !target || config_.max_length_ratio == 0) return;
  const auto [shorter, longer] = std::minmax({std::ssize(source.ids), std::ssize(target->ids)});
  const double ratio = static_cast<double>(longer) / static_cast<double>(shorter);
  if (ratio <= config_.max_length_ratio) return;
  faults.drop("", "length_ratio",
              fmt::format("{} source and {} target pieces, at most {} times as many (max_length_ratio)",
                          source.ids.size(), target->ids.size(), config_.max_length_ratio));
}

prepare::Converted TranslationPreparation::convert_record(data::RecordSlice& record) const {
  prepare::Converted converted;
  converted.id = std::to_string(record.index + 1);
  const std::string_view text = record.text;
  const std::size_t end = text.find('\n');
  Side source = read_side(text.substr(0, end), "source", converted.faults);
  std::optional<Side> target;
  if (end != std::string_view::npos) target = read_side(text.substr(end + 1), "target", converted.faults);
  if (!converted.faults.rejected()) filter(source, target, converted.faults);
  if (converted.faults.rejected() || converted.faults.dropped()) return converted;
  source.ids.push_back(special_.eos);
  if (target) target->ids.push_back(special_.eos);
  data::Example& example = converted.examples.emplace_back();
  example["id"] = converted.id;
  example["record_index"] = record.index;
  example["source_ids"] = std::move(source.ids);
  example["target_ids"] = target ? std::move(target->ids) : std::vector<std::int64_t>{};
  example["reference"] = target ? std::string(target->line) : std::string();
  return converted;
}

prepare::Counts TranslationPreparation::run(const prepare::RunOptions& options) const {
  if (options.targets.empty() && labels_required_) {
    fail_usage("etc prepare", "--target is required for split {}: expected a translation of each source file",
               options.split);
  }
  return run_pairs(*this, options, special_.unk);
}

const prepare::PreparationKind& preparation_kind() {
  static const prepare::PreparationKind kKind{.settings = prepare_settings(),
                                              .make = make_preparation,
                                              .inputs = prepare::InputKind::parallel_texts,
                                              .learn = learn_vocabulary};
  return kKind;
}

}  // namespace etc::translation
