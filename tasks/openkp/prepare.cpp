#include "tasks/openkp/prepare.h"

#include <algorithm>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "tasks/openkp/phrase_search.h"
#include "tasks/openkp/phrases.h"
#include "tasks/openkp/schema.h"
#include "tasks/text/record_fields.h"

namespace etc::openkp {

namespace {

using Numbers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

std::int64_t indicators_of(const Element& e) {
  return (e.own.block ? kBlock : 0) | (e.own.inlined ? kInline : 0) | (e.own.heading ? kHeading : 0) |
         (e.own.leaf ? kLeaf : 0) | (e.own.bold ? kBold : 0) | (e.parent.heading ? kParentHeading : 0) |
         (e.parent.leaf ? kParentLeaf : 0) | (e.parent.bold ? kParentBold : 0);
}

void check_lengths(const Page& page, const Features& f, const PrepareConfig& config, prepare::FaultList& faults) {
  if (f.long_token_ids.empty()) {
    faults.reject("VDOM", "nothing_kept",
                  fmt::format("no token of the page fits long_max_length={} and "
                              "global_max_length={}",
                              config.long_max_length, config.global_max_length));
  }
  if (f.num_words > config.long_max_length) {
    faults.reject("text", "too_many_words",
                  fmt::format("{} words exceed long_max_length={}", f.num_words, config.long_max_length));
  }
  const std::int64_t words = word_count(page.text);
  if (f.num_words < words) {
    faults.warn_quietly("VDOM", "truncated",
                        fmt::format("{} of {} words and {} of {} elements kept", f.num_words, words,
                                    f.element_words.size(), page.elements.size()));
  }
  for (std::int64_t i = 0; i < f.words_without_tokens; ++i) faults.count("word_without_piece");
}

// Label faults exclude a page from training; a page that is only predicted needs no labels.
bool needs_labels(const PrepareConfig& config) {
  return config.labels_required || config.parity == Parity::reference;
}

void label_fault(const PrepareConfig& config, prepare::FaultList& faults, const std::string& code,
                 const std::string& message) {
  if (needs_labels(config)) {
    faults.reject("KeyPhrases", code, message);
  } else {
    faults.warn("KeyPhrases", code, message);
  }
}

void check_labels(const Page& page, const Features& f, bool any_key, const PrepareConfig& config,
                  prepare::FaultList& faults) {
  // With fixed blocks the reference accepts a page with an empty list of key phrases.
  const bool none_expected = config.fixed_block_len > 0 && !any_key;
  if (f.labels.empty() && !none_expected) {
    label_fault(config, faults, "no_label_located", "no key phrase lies within one of the kept elements");
  }
  if (std::ssize(f.labels) > config.max_key_phrases) {
    label_fault(config, faults, "key_phrase_excess",
                fmt::format("{} key phrases found, at most {} expected", f.labels.size(), config.max_key_phrases));
  }
  const auto too_long = [&](const PhraseLabel& label) { return label.length > config.kp_max_length; };
  const auto longer = std::count_if(f.labels.begin(), f.labels.end(), too_long);
  if (longer > 0) {
    const std::string message =
        fmt::format("{} of {} key phrases have more than {} words", longer, f.labels.size(), config.kp_max_length);
    if (longer == std::ssize(f.labels) && config.parity == Parity::repaired) {
      label_fault(config, faults, "key_phrase_too_long", message);
    } else {
      faults.warn("KeyPhrases", "key_phrase_too_long", message);
    }
  }
  if (f.missing_keys.empty()) return;
  const std::vector<bool> in_text = occur_in_text(f.missing_keys, data::lower_case(page.text));
  PhraseSearch in_elements(f.missing_keys);
  for (const Element& e : page.elements) in_elements.find_new(data::lower_case(e.text));
  for (std::size_t i = 0; i < f.missing_keys.size(); ++i) {
    if (!in_text[i] || in_elements.found(i)) continue;
    faults.warn("KeyPhrases", "key_phrase_crosses_vdom",
                prepare::quoted(f.missing_keys[i]) + " is in the text, but not inside one element");
  }
}

}  // namespace

std::vector<Phrase> chosen_phrases(const Page& page, const PrepareConfig& config, prepare::FaultList& faults) {
  const std::vector<Phrase>& all = *page.key_phrases;
  if (!config.dedup) return all;
  const std::vector<std::size_t> valid = valid_phrases(all, page.text);
  std::vector<Phrase> chosen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string field = text::element("KeyPhrases", i);
    const std::string text = phrase_text(all[i]);
    if (!std::binary_search(valid.begin(), valid.end(), i)) {
      if (text.empty()) {
        faults.warn(field, "key_phrase_empty", "the key phrase has no words and is left out");
      } else {
        faults.warn(field, "key_phrase_not_in_text",
                    prepare::quoted(text) + " is not in the text as whole words and is left out");
      }
    } else if (std::ssize(chosen) == config.max_key_phrases) {
      faults.warn(field, "key_phrase_excess",
                  fmt::format("{} is left out, {} are before it", prepare::quoted(text), config.max_key_phrases));
    } else {
      chosen.push_back({text});
    }
  }
  if (chosen.empty()) label_fault(config, faults, "key_phrase_none", "no key phrase is in the text");
  return chosen;
}

data::Example visual_features(const Page& page, std::int64_t kept_elements) {
  Floats x, y, width, height, parent_x, parent_y, parent_width, parent_height;
  Numbers font, parent_font, indicators;
  const auto count = static_cast<std::size_t>(kept_elements);
  for (Floats* floats : {&x, &y, &width, &height, &parent_x, &parent_y, &parent_width, &parent_height}) {
    floats->reserve(count);
  }
  for (Numbers* numbers : {&font, &parent_font, &indicators}) numbers->reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Element& e = page.elements[i];
    x.push_back(e.own.x);
    y.push_back(e.own.y);
    width.push_back(e.own.width);
    height.push_back(e.own.height);
    parent_x.push_back(e.parent.x);
    parent_y.push_back(e.parent.y);
    parent_width.push_back(e.parent.width);
    parent_height.push_back(e.parent.height);
    font.push_back(font_id(e.own.font_size));
    parent_font.push_back(font_id(e.parent.font_size));
    indicators.push_back(indicators_of(e));
  }
  return {{"x_coords", std::move(x)},
          {"y_coords", std::move(y)},
          {"widths", std::move(width)},
          {"heights", std::move(height)},
          {"parent_x_coords", std::move(parent_x)},
          {"parent_y_coords", std::move(parent_y)},
          {"parent_widths", std::move(parent_width)},
          {"parent_heights", std::move(parent_height)},
          {"font_ids", std::move(font)},
          {"parent_font_ids", std::move(parent_font)},
          {"indicators", std::move(indicators)}};
}

const data::Schema& OpenkpPreparation::schema() const {
  return openkp::schema();
}

const data::UnreadMembers& OpenkpPreparation::unread_members() const {
  static const data::UnreadMembers kUnread({}, {kRecordMembers.begin(), kRecordMembers.end()});
  return kUnread;
}

Json OpenkpPreparation::preprocess_config() const {
  return stored_settings(prepare_settings());
}

prepare::Converted OpenkpPreparation::convert(const data::JsonRecord& raw) const {
  prepare::Converted result;
  prepare::FaultList& faults = result.faults;
  Page page = read_page(raw, config_, faults);
  result.id = page.url;
  std::vector<std::string> keys;
  if (page.key_phrases) {
    keys = key_strings(faults.rejected() ? *page.key_phrases : chosen_phrases(page, config_, faults));
  }
  // A page without a valid phrase is still scored, against its raw key phrases.
  result.reject_details["key_phrases"] = keys.empty() && page.key_phrases ? key_strings(*page.key_phrases) : keys;
  if (faults.rejected()) return result;
  result.was_candidate = true;  // see candidate()
  Features f = lay_out(page, keys, *tokenizer_, config_);
  check_lengths(page, f, config_, faults);
  if (page.key_phrases && !faults.rejected()) check_labels(page, f, !keys.empty(), config_, faults);
  if (faults.rejected()) return result;

  Numbers starts, lengths;
  for (const PhraseLabel& label : f.labels) {
    starts.push_back(label.start);
    lengths.push_back(label.length);
  }
  const bool blocks = config_.fixed_block_len > 0;
  data::Example& example = result.examples.emplace_back(visual_features(page, blocks ? 0 : f.num_globals));
  example["id"] = std::move(page.url);
  example["record_index"] = raw.index;
  example["long_token_ids"] = std::move(f.long_token_ids);
  example["long_word_idx"] = std::move(f.long_word_idx);
  example["long_vdom_idx"] = std::move(f.long_vdom_idx);
  example["num_words"] = f.num_words;
  example["num_words_text"] = word_count(page.text);
  example["label_start_idx"] = std::move(starts);
  example["label_phrase_len"] = std::move(lengths);
  example["first_occurrence"] =
      config_.first_occurrence && !blocks ? first_occurrences(f, config_.kp_max_length) : Numbers();
  example["text"] = std::move(page.text);
  example["key_phrases"] = std::move(keys);
  return result;
}

std::optional<prepare::Candidate> OpenkpPreparation::candidate(const data::JsonRecord& raw) const {
  prepare::FaultList faults;
  const Page page = read_page(raw, config_, faults);
  std::int64_t valid = 0;
  if (page.key_phrases) {
    valid = std::ssize(valid_phrases(*page.key_phrases, page.text));
    if (valid == 0 && needs_labels(config_)) return std::nullopt;
  }
  if (faults.rejected()) return std::nullopt;
  return prepare::Candidate{page.url, valid};
}

namespace {

// Loads the vocabulary as the settings say; see PreparationKind::make.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels labels) {
  const PrepareConfig config = read_prepare_config(settings, labels);
  auto tokenizer =
      text::load_tokenizer(vocab, config.tokenizer, {.do_lower_case = config.do_lower_case, .whole_user_pieces = true});
  return std::make_unique<OpenkpPreparation>(config, std::move(tokenizer));
}

}  // namespace

const prepare::PreparationKind& preparation_kind() {
  static const prepare::PreparationKind kKind{prepare_settings(), make_preparation};
  return kKind;
}

}  // namespace etc::openkp
