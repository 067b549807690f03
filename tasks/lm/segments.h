// Texts as pieces → segments of a fixed length (schema.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/dataset.h"

namespace etc::lm {

class SegmentMaker {
 public:
  // length: pieces that a segment reads, at least 1. text_end: e. first_text: the number of the first text. take: called
  // with each segment as an example of the schema.
  SegmentMaker(std::int64_t length, std::int32_t text_end, std::int64_t first_text,
               std::function<void(data::Example&&)> take)
      : length_(length), text_end_(text_end), take_(std::move(take)), text_(first_text) {}

  // Adds the next piece of the text, and the number of raw characters that count with it. The first piece begins a text.
  void add(std::int32_t id, std::int64_t characters);
  // Adds characters without a piece of their own; they count with the next label.
  void add_characters(std::int64_t characters) { characters_ += characters; }
  // Ends the text; a text without pieces gives no segment.
  void end_text();

  std::int64_t texts() const { return text_; }  // the number of the next one

 private:
  void predict(std::int32_t next);
  void emit(std::int32_t next);

  const std::int64_t length_;
  const std::int32_t text_end_;
  std::function<void(data::Example&&)> take_;
  std::int64_t text_, segment_ = 0, characters_ = 0;
  std::vector<std::int64_t> reads_;  // pieces of the open segment; empty: no text is open
};

}  // namespace etc::lm
