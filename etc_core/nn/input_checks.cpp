#include "etc_core/nn/input_checks.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "etc_core/base/error.h"
#include "etc_core/base/offsets.h"
#include "etc_core/base/shape.h"

namespace etc {

namespace {

void check_input_offsets(const char* name, const std::vector<std::int64_t>& offsets) {
  if (offsets.empty() || offsets.front() != 0) {
    fail(kEncoderInput, "{}: expected offsets that begin with 0, got {}", name,
         offsets.empty() ? "none" : std::to_string(offsets.front()));
  }
  check_offsets(kEncoderInput, name, offsets.data(), std::ssize(offsets) - 1);
}

void check_count(const char* name, std::size_t got, std::int64_t expected, const char* letter, bool may_be_absent) {
  if (static_cast<std::int64_t>(got) == expected || (may_be_absent && got == 0)) return;
  fail(kEncoderInput, "{}: expected [{}={}], got [{}]", name, letter, expected, got);
}

// Advice in messages about positions beyond an encoder's table.
constexpr const char* kNoRow =
    "positions beyond have no row in the table: prepare shorter inputs, or take a model with relative positions";

void check_adder(const char* name, const Var& adder, const char* letter, std::int64_t rows, std::int64_t hidden) {
  if (!adder.defined()) return;
  const Tensor& value = adder.value();
  if (value.rank() == 2 && value.dim(0) == rows && value.dim(1) == hidden) return;
  fail(kEncoderInput, "{}: expected {}, got {}", name, shape_text({{letter, rows}, {"H", hidden}}), value.shape_text());
}

void check_lengths(const char* side, const std::vector<std::int64_t>& offsets, std::int64_t limit) {
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    if (offsets[b + 1] - offsets[b] > limit) {
      fail(kEncoderInput, "{} length: example {}: expected at most max_absolute_position_embeddings={}, got {} ({})",
           side, b, limit, offsets[b + 1] - offsets[b], kNoRow);
    }
  }
}

// The same check for given position ids, whose number has been checked. The embedding operator rejects negative ids.
void check_positions(const char* name, const std::vector<std::int32_t>& ids, const std::vector<std::int64_t>& offsets,
                     std::int64_t limit) {
  const auto beyond = std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id >= limit; });
  if (beyond == ids.end()) return;
  const std::int64_t at = beyond - ids.begin();
  const auto next = std::upper_bound(offsets.begin(), offsets.end(), at);  // of the next example
  fail(kEncoderInput,
       "{}: example {}, position {}: expected an id from 0 to {}, since max_absolute_position_embeddings={}, got {} "
       "({})",
       name, next - offsets.begin() - 1, at - *std::prev(next), limit - 1, limit, *beyond, kNoRow);
}

// One side's two label tensors: checks their sizes, and that either both or neither select relative vectors.
struct LabelSide {
  const char* names[2];
  const Buffer<std::uint8_t>* labels[2];
  std::int64_t sizes[2];
  bool relative;
};

void check_labels(const LabelSide& side, std::int64_t relative_labels) {
  for (int i = 0; i < 2; ++i) {
    const std::int64_t got = side.labels[i]->size();
    if (got != side.sizes[i] && got != 0) {
      fail(kEncoderInput, "labels.{}: expected {} labels, got {}", side.names[i], side.sizes[i], got);
    }
    if (side.relative && got != side.sizes[i]) {
      fail(kEncoderInput, "labels.{}: missing, but labels.{} select relative vectors (both or neither)", side.names[i],
           side.names[1 - i]);
    }
  }
  if (side.relative && relative_labels == 0) {
    fail(kEncoderInput, "labels.{} select relative vectors, but relative_vocab_size is null", side.names[0]);
  }
}

// The names of one side's lists in messages.
struct InputSide {
  const char* letter;
  const char* what;
  const std::vector<std::int64_t>& offsets;
  const std::vector<std::int32_t>&token_ids, &segment_ids, &position_ids;
  const Var& adder;
  const char* names[4];  // of the lists and the adder
};

void check_side(const InputSide& side, const EncoderConfig& config) {
  const std::int64_t tokens = side.offsets.back();
  check_count(side.names[0], side.token_ids.size(), tokens, side.letter, false);
  check_count(side.names[1], side.segment_ids.size(), tokens, side.letter, true);
  check_count(side.names[2], side.position_ids.size(), tokens, side.letter, true);
  check_adder(side.names[3], side.adder, side.letter, tokens, config.hidden_size);
  const std::int64_t limit = config.max_absolute_position_embeddings;
  if (limit == 0 && !side.position_ids.empty()) {
    fail(kEncoderInput, "{}: given, but max_absolute_position_embeddings is 0", side.names[2]);
  }
  if (limit > 0 && side.position_ids.empty()) check_lengths(side.what, side.offsets, limit);
  if (limit > 0) check_positions(side.names[2], side.position_ids, side.offsets, limit);
}

InputSide long_side(const EncoderInput& input) {
  return {"T",
          "long",
          input.long_offsets,
          input.token_ids,
          input.segment_ids,
          input.position_ids,
          input.long_embedding_adder,
          {"token_ids", "segment_ids", "position_ids", "long_embedding_adder"}};
}

InputSide global_side(const EncoderInput& input) {
  return {"U",
          "global",
          input.global_offsets,
          input.global_token_ids,
          input.global_segment_ids,
          input.global_position_ids,
          input.global_embedding_adder,
          {"global_token_ids", "global_segment_ids", "global_position_ids", "global_embedding_adder"}};
}

}  // namespace

void check_sequence(const EncoderInput& input, const EncoderConfig& config) {
  check_input_offsets("long_offsets", input.long_offsets);
  check_side(long_side(input), config);
  check_count("sample_ordinals", input.sample_ordinals.size(), input.batch(), "B", true);
  if (input.global_tokens() != 0 || !input.global_token_ids.empty()) {
    fail(kEncoderInput, "expected no global tokens, since a dense encoder has none, got {}",
         std::max(input.global_tokens(), std::ssize(input.global_token_ids)));
  }
}

void check_input(const EncoderInput& input, const EtcConfig& config) {
  check_input_offsets("long_offsets", input.long_offsets);
  check_input_offsets("global_offsets", input.global_offsets);
  if (input.long_offsets.size() != input.global_offsets.size()) {
    fail(kEncoderInput, "long_offsets and global_offsets must have equal lengths: [{}] and [{}]",
         input.long_offsets.size(), input.global_offsets.size());
  }
  check_side(long_side(input), config);
  check_side(global_side(input), config);
  check_count("sample_ordinals", input.sample_ordinals.size(), input.batch(), "B", true);
  if (!input.memory.empty()) {
    fail(kEncoderInput, "memory: expected none, since an ETC keeps none, got {} rows", input.memory.offsets.back());
  }
  const std::int64_t long_tokens = input.long_tokens();

  std::int64_t long_by_global = 0, global_by_global = 0;  // pairs of all examples
  for (std::size_t b = 0; b + 1 < input.long_offsets.size(); ++b) {
    const std::int64_t L = input.long_offsets[b + 1] - input.long_offsets[b];
    const std::int64_t G = input.global_offsets[b + 1] - input.global_offsets[b];
    long_by_global += L * G;
    global_by_global += G * G;
  }
  const sparse::AttentionLabels& labels = input.labels;
  check_labels({{"l2l", "l2g"},
                {&labels.l2l, &labels.l2g},
                {long_tokens * (2 * config.local_radius + 1), long_by_global},
                labels.long_relative},
               config.relative_labels());
  check_labels({{"g2g", "g2l"}, {&labels.g2g, &labels.g2l}, {global_by_global, long_by_global}, labels.global_relative},
               config.relative_labels());
}

}  // namespace etc
