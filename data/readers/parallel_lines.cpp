#include "data/readers/parallel_lines.h"

#include <utility>

namespace etc::data {

ParallelLines::ParallelLines(ByteStream& source, const std::optional<std::filesystem::path>& target) : source_(source) {
  if (!target) return;
  target_path_ = *target;
  target_stream_.emplace(*target);
  target_.emplace(*target_stream_);
}

ParallelLines::ParallelLines(ByteStream& source, ByteStream& target, std::filesystem::path target_path)
    : source_(source), target_path_(std::move(target_path)), target_(target) {}

bool ParallelLines::next(RecordSlice& slice) {
  if (next_index_ == 0) {
    byte_order_mark_ = source_.skip_byte_order_mark();
    if (target_) target_byte_order_mark_ = target_->skip_byte_order_mark();
  }
  slice = {};
  slice.index = next_index_;
  slice.begin = source_.position();
  slice.stands_alone = true;
  std::string target;
  const bool has_source = source_.append(slice.text);
  const bool has_target = target_ && append_target(target);
  if (target_ && has_source != has_target) fail_unequal(has_source);
  if (!has_source) return false;
  slice.text.resize(without_line_end(slice.text).size());
  if (target_) slice.text.append("\n").append(without_line_end(target));
  slice.text.reserve(slice.text.size() + kTextPadding);
  ++next_index_;
  return true;
}

bool ParallelLines::append_target(std::string& text) {
  try {
    return target_->append(text);
  } catch (const InputFault& fault) {
    // The message begins with a place, which is in the target file, so that file is named.
    throw InputFault(fault.code(), fault.where(),
                     fmt::format("in the target file {}: {}", raw_file_text(target_path_), fault.what()));
  }
}

void ParallelLines::fail_unequal(bool source_is_longer) {
  std::int64_t more = 1;
  TextLines& longer = source_is_longer ? source_ : *target_;
  for (std::string line; longer.append(line); line.clear()) ++more;
  fail("prepare", "source and target have different numbers of lines: {} and {}: expected a line for each line ({})",
       next_index_ + (source_is_longer ? more : 0), next_index_ + (source_is_longer ? 0 : more),
       raw_file_text(target_path_));
}

std::vector<FileNote> ParallelLines::notes() const {
  std::vector<FileNote> notes;
  if (byte_order_mark_) notes.push_back(byte_order_mark_note());
  if (target_byte_order_mark_) {
    notes.push_back({"byte_order_mark", "the target file starts with a byte-order mark, which is left out"});
  }
  return notes;
}

}  // namespace etc::data
