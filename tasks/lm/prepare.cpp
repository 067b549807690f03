#include "tasks/lm/prepare.h"

#include <algorithm>
#include <utility>

#include "data/readers/line_blocks.h"
#include "data/text/character_vocab.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tasks/lm/schema.h"
#include "tasks/lm/text_run.h"
#include "tasks/prepare/inputs.h"
#include "tasks/prepare/learn_vocabulary.h"

namespace etc::lm {

namespace {

bool has_kind(const data::Tokenizer& tokenizer, std::string_view kind) {
  return tokenizer.kind() == kind;
}

// See PreparationKind::make. A text has its own labels, so the setting for labels is not used.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels /*labels*/) {
  const PrepareConfig config = prepare_settings().read(settings, "etc prepare");
  return std::make_unique<LmPreparation>(config, data::load_tokenizer(vocab, {.do_lower_case = config.do_lower_case}));
}

// Calls visit for every block of lines of a text.
void for_each_block(const std::filesystem::path& input, const std::function<void(std::string_view)>& visit) {
  data::ByteStream stream(input);
  data::LineBlockReader reader(stream);
  for (data::RecordSlice slice; reader.next(slice);) visit(slice.text);
}

void for_each_character(std::string_view text, const data::VisitWord& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (data::next_code_point(text, at) != data::kNoCharacter) visit(text.substr(begin, at - begin));
  }
}

// See PreparationKind::learn: the most frequent characters of the texts.
void learn_characters(const std::vector<std::filesystem::path>& inputs, const Json& /*settings*/, std::int64_t size,
                      const std::filesystem::path& output) {
  if (output.extension() != ".chars") {
    fail_usage(
        "etc prepare",
        "--output {}: task lm learns characters: expected a name *.chars (WordPiece: --task pretrain, byte pairs: "
        "--task translation)",
        output.string());
  }
  for (const auto& input : inputs) prepare::check_input(input);
  const data::WordCounts counts = data::count_words(
      [&](const auto& visit) {
        for (const auto& input : inputs) for_each_block(input, visit);
      },
      data::SplitWords(for_each_character));
  if (counts.empty()) fail("etc prepare", "--learn-vocab: no character in the texts: expected at least one");
  const std::u32string characters = data::most_frequent_characters(counts, size);
  prepare::write_learned(output, data::character_vocab_text(characters));
  log::info("{}: {} of {} different characters", output.string(), characters.size(), counts.size());
}

}  // namespace

LmPreparation::LmPreparation(const PrepareConfig& config, std::unique_ptr<data::Tokenizer> tokenizer)
    : config_(config),
      tokenizer_(std::move(tokenizer)),
      text_end_(tokenizer_->piece_id(has_kind(*tokenizer_, "wordpiece") ? "[SEP]" : "</s>")),
      unknown_(tokenizer_->piece_id(has_kind(*tokenizer_, "wordpiece") ? "[UNK]" : "<unk>")),
      keeps_line_ends_(has_kind(*tokenizer_, "characters")) {}

const data::Schema& LmPreparation::schema() const {
  return lm::schema();
}

Json LmPreparation::preprocess_config() const {
  Json stored = prepare_settings().to_json(config_);
  stored.update({{"tokenizer", tokenizer_->kind()},
                 {"do_lower_case", tokenizer_->lower_case()},
                 {"vocabulary", tokenizer_->vocab_size()},
                 {"text_end", text_end_}});
  return stored;
}

std::unique_ptr<data::RecordReader> LmPreparation::open_records(data::ByteStream& stream) const {
  return std::make_unique<data::LineBlockReader>(stream);
}

prepare::Counts LmPreparation::run(const prepare::RunOptions& options) const {
  return run_texts(*this, options);
}

CutLines LmPreparation::cut(std::string_view text) const {
  CutLines cut;
  std::string valid;
  if (data::invalid_utf8(text)) {
    valid = data::to_utf8(data::to_code_points(text));
    cut.invalid_bytes = std::ssize(text) - std::ssize(valid);
    text = valid;
  }
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    cut_line(text.substr(0, size), cut);
    text.remove_prefix(size);
  }
  return cut;
}

void LmPreparation::cut_line(std::string_view line, CutLines& cut) const {
  const std::string_view bare = data::without_line_end(line);
  CutLines::Line& added = cut.lines.emplace_back();
  added.ends_text =
      config_.text_ends == TextEnds::lines || (config_.text_ends == TextEnds::empty_lines && data::strip(bare).empty());
  const std::string_view of_text = config_.text_ends == TextEnds::lines ? bare : added.ends_text ? "" : line;
  tokenizer_->append_ids(keeps_line_ends_ ? of_text : of_text.substr(0, std::min(of_text.size(), bare.size())),
                         cut.ids);
  added.end = std::ssize(cut.ids);
  for (std::size_t at = 0; at < of_text.size(); ++added.characters) data::next_code_point(of_text, at);
}

const prepare::PreparationKind& preparation_kind() {
  static const prepare::PreparationKind kKind{
      .settings = prepare_settings(), .make = make_preparation, .learn = learn_characters};
  return kKind;
}

}  // namespace etc::lm
