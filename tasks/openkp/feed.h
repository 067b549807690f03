// Features of prepared OpenKP pages → encoder input (task-openkp 3), and the token ranges of words and elements in a batch.
#pragma once

#include <memory>
#include <string>

#include "etc_core/autograd/ngram.h"
#include "tasks/task.h"

namespace etc::openkp {

inline constexpr std::int32_t kElementTokenId = 1;  // token id of every global token

// Page elements (or blocks) V and words w of a page.
std::int64_t num_elements(const data::Example& example);
std::int64_t num_words(const data::Example& example);

// Throws Error "feed: <where>: example <id>: <feature>: …" when the features of one page contradict each other or the
// model: features of one class with different lengths, word or element numbers that decrease or are out of range, labels
// beyond the words, font classes or tokens beyond their tables, coordinates that are not finite.
void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where);

// Checks the pages, builds the batch and its labels: a token belongs to the element that contains it.
// global_attention false: an ablation (GlobalAttention::read_out).
EncoderInput feed(Examples examples, const EncoderConfig& model, bool global_attention, const std::string& where);

// Row ranges in a batch of pages that feed() has checked.
SegmentOffsets tokens_of_words(Examples examples);                    // [words of all pages + 1] into the T long tokens
SegmentOffsets tokens_of_elements(Examples examples);                 // [U+1] into the T long tokens
std::shared_ptr<const RaggedRows> words_of_pages(Examples examples);  // [B+1] into the words of all pages

}  // namespace etc::openkp
