#include "tasks/lm/segments.h"

#include <string>
#include <utility>

namespace etc::lm {

void SegmentMaker::add(std::int32_t id, std::int64_t characters) {
  if (reads_.empty()) reads_.push_back(text_end_);
  characters_ += characters;
  predict(id);
  reads_.push_back(id);
}

// `next` is the label of the last piece that was read; if the segment is full, this completes it.
void SegmentMaker::predict(std::int32_t next) {
  if (std::ssize(reads_) == length_) emit(next);
}

void SegmentMaker::emit(std::int32_t next) {
  data::Example example;
  example["id"] = std::to_string(text_) + ":" + std::to_string(segment_);
  example["record_index"] = text_;
  example["segment"] = segment_;
  example["token_ids"] = std::exchange(reads_, {});
  example["next_id"] = std::int64_t{next};
  example["characters"] = std::exchange(characters_, 0);
  ++segment_;
  take_(std::move(example));
}

void SegmentMaker::end_text() {
  if (!reads_.empty()) {
    emit(text_end_);
    ++text_;
  }
  segment_ = characters_ = 0;
}

}  // namespace etc::lm
