#include "tasks/prepare/text_progress.h"

#include <algorithm>
#include <numeric>

#include "data/readers/byte_stream.h"
#include "tasks/prepare/inputs.h"

namespace etc::prepare {

namespace {

std::int64_t uncompressed_bytes(const std::filesystem::path& input) {
  constexpr std::size_t kBeginning = 1 << 20;
  std::vector<char> block(kBeginning);
  data::ByteStream stream(input);
  const auto read = static_cast<double>(stream.read(block.data(), block.size()));
  const auto stored = static_cast<double>(std::max<std::int64_t>(1, stream.position()));
  return static_cast<std::int64_t>(read / stored * static_cast<double>(std::filesystem::file_size(input)));
}

std::vector<std::int64_t> sizes_of(const std::vector<std::filesystem::path>& inputs) {
  if (std::any_of(inputs.begin(), inputs.end(), is_stream)) return {};
  std::vector<std::int64_t> sizes;
  for (const auto& input : inputs) sizes.push_back(uncompressed_bytes(input));
  return sizes;
}

}  // namespace

TextProgress::TextProgress(const std::string& what, const std::vector<std::filesystem::path>& inputs,
                           std::int64_t passes)
    : files_(sizes_of(inputs)),
      unit_(progress_unit(total(passes))),
      progress_(what, total(passes) / unit_.bytes, unit_.name) {}

std::int64_t TextProgress::total(std::int64_t passes) const {
  return passes * std::accumulate(files_.begin(), files_.end(), std::int64_t{0});
}

void TextProgress::add_text(std::string_view text) {
  text_ += std::ssize(text) + 1;  // what ends it: a line end, or the quote of a JSON string
  std::int64_t bytes = text_;
  if (!files_.empty()) {
    const double ratio =
        finished_text_ > 0 ? static_cast<double>(finished_bytes_) / static_cast<double>(finished_text_) : 1;
    bytes = std::min(files_[file_], static_cast<std::int64_t>(ratio * static_cast<double>(text_)));
  }
  progress_.update((finished_bytes_ + bytes) / unit_.bytes);
}

void TextProgress::end_file() {
  finished_bytes_ += files_.empty() ? text_ : files_[file_];
  finished_text_ += text_;
  text_ = 0;
  if (!files_.empty()) file_ = (file_ + 1) % files_.size();
  progress_.update(finished_bytes_ / unit_.bytes);
}

}  // namespace etc::prepare
