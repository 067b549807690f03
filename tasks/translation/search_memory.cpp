#include "tasks/translation/search_memory.h"

#include <algorithm>
#include <memory>

#include "etc_core/base/byte_size.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"

namespace etc::translation {

namespace {

// The lines, their pieces, and hypotheses as they grow: each is there as what it was and as what it becomes, in vectors with
// up to twice the room.
std::int64_t bytes_of_texts(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines,
                            const TranslatorOptions& options) {
  constexpr std::int64_t kOfPiece = 4 * (sizeof(std::int32_t) + sizeof(double));
  std::int64_t bytes = 0;
  for (const SourceLine& line : lines) bytes += std::ssize(line.text) + std::ssize(line.prefix) + std::ssize(line.text);
  for (const TranslationSource& sentence : sentences) {
    const std::int64_t tokens = std::ssize(sentence.ids);
    bytes += 2 * tokens * std::int64_t{sizeof(std::int32_t)};
    if (tokens > 0) bytes += options.beam * longest_translation(options, tokens) * kOfPiece;
  }
  return bytes;
}

}  // namespace

SearchMemory::SearchMemory(std::vector<Seq2SeqConfig> models, const TranslatorOptions& options,
                           const TranslatorCompute& compute, std::int64_t limit)
    : models_(std::move(models)),
      options_(options),
      compute_(compute),
      limit_(limit),
      fit_("etc translate", limit, compute.device, models_.front(), compute.type),
      batch_tokens_(options.batch_tokens) {
  peak_ = expected({}, options_);  // of the weights alone
}

SearchMemory::Size SearchMemory::size_of(const Batch& batch) const {
  Size size{};
  for (const TranslationSource& sentence : batch) {
    const std::int64_t tokens = std::ssize(sentence.ids);
    const auto count = static_cast<double>(tokens);
    size[0] += static_cast<double>(longest_translation(options_, tokens));
    size[1] += count;
    size[2] += count * count;
  }
  return size;
}

bool SearchMemory::known(const Size& size) const {
  return std::ranges::any_of(counted_, [&](const Size& counted) {
    return size[0] <= counted[0] && size[1] <= counted[1] && size[2] <= counted[2];
  });
}

// Those with the most in some way, of which nothing is known.
std::vector<SearchMemory::Batch> SearchMemory::largest_batches(std::span<const TranslationSource> sentences,
                                                               std::int64_t batch_tokens) const {
  struct Largest {
    Batch batch;
    Size size{};
  };
  std::array<Largest, 3> largest;
  for (const std::vector<std::size_t>& numbers : search_batches(sentences, {options_, batch_tokens})) {
    Batch batch;
    for (const std::size_t i : numbers) batch.push_back(sentences[i]);
    const Size size = size_of(batch);
    if (known(size)) continue;
    for (std::size_t by = 0; by < largest.size(); ++by) {
      if (size[by] > largest[by].size[by]) largest[by] = {batch, size};
    }
  }
  std::vector<Batch> batches;
  std::vector<Size> sizes;
  for (Largest& each : largest) {
    if (each.batch.empty() || std::ranges::count(sizes, each.size) > 0) continue;
    sizes.push_back(each.size);
    batches.push_back(std::move(each.batch));
  }
  return batches;
}

// What is known was so with the texts that there were.
void SearchMemory::take_texts(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines) {
  const std::int64_t bytes = bytes_of_texts(sentences, lines, options_);
  if (bytes <= texts_) return;
  peak_.beside += bytes - texts_;
  texts_ = bytes;
  if (limit_ > 0) counted_.clear();
}

ProcessMemory SearchMemory::expected(const Batch& batch, const SearchOptions& search) const {
  const auto call = [&](const std::function<void()>& loaded) {
    std::vector<std::unique_ptr<TranslatorModel>> made;
    std::vector<TranslationModel> models;
    for (const Seq2SeqConfig& config : models_) {
      TranslatorModel& model = *made.emplace_back(std::make_unique<TranslatorModel>(config));
      for (const auto& parameter : model.parameters.all()) parameter->allocate();
      model.release_kernels(compute_.type);
      models.push_back({model.encoder, model.decoder});
    }
    loaded();
    translate(models, batch, {search, std::ssize(batch) * search.limit});
  };
  ProcessMemory memory = fit_.memory(call);
  if (compute_.device == Device::cpu) memory.beside += texts_;
  return memory;
}

bool SearchMemory::fits(const Batch& batch, const SearchOptions& search) const {
  return expected(batch, search).peak() <= limit_;
}

const ProcessMemory& SearchMemory::peak(std::span<const TranslationSource> sentences,
                                        std::span<const SourceLine> lines) {
  take_texts(sentences, lines);
  for (const Batch& batch : largest_batches(sentences, batch_tokens_)) {
    const ProcessMemory own = expected(batch, options_);
    if (own.peak() > peak_.peak()) peak_ = own;
    counted_.push_back(size_of(batch));
  }
  return peak_;
}

std::int64_t SearchMemory::fitting_tokens(std::span<const TranslationSource> sentences,
                                          std::span<const SourceLine> lines, std::int64_t first_line) {
  take_texts(sentences, lines);
  for (std::int64_t tokens = batch_tokens_; tokens > 0; tokens /= 2) {
    const bool enough = std::ranges::all_of(largest_batches(sentences, tokens), [&](const Batch& batch) {
      if (!fits(batch, options_)) return false;
      counted_.push_back(size_of(batch));
      return true;
    });
    if (!enough) continue;
    if (tokens < batch_tokens_) {
      log::info("memory limit {}: up to {} tokens are searched together, of {}", byte_size_text(limit_), tokens,
                options_.batch_tokens);
    }
    return batch_tokens_ = tokens;
  }
  refuse(sentences, first_line);
}

// The longest translation of one sentence that fits, below one that does not.
std::int64_t SearchMemory::longest_that_fits(const TranslationSource& sentence) const {
  std::int64_t good = 0, bad = longest_translation(options_, std::ssize(sentence.ids));
  while (bad - good > 1) {
    const std::int64_t middle = (good + bad) / 2;
    SearchOptions shorter = options_;
    shorter.max_len_a = 0;
    shorter.max_len_b = middle;
    (fits({{sentence.ids, {}}}, shorter) ? good : bad) = middle;
  }
  return good;
}

void SearchMemory::refuse(std::span<const TranslationSource> sentences, std::int64_t first_line) const {
  const auto taken_by = [&](const Batch& batch) { return byte_size_text(expected(batch, options_).peak()); };
  const std::string limit = byte_size_text(limit_);
  const auto too_long = std::ranges::find_if(sentences, [&](const TranslationSource& sentence) {
    return !sentence.ids.empty() && !fits({sentence}, options_);
  });
  if (too_long == sentences.end() || !fits({}, options_)) {
    fail("etc translate", "the memory limit of {} is too low for this model, which takes {} (take a smaller one)",
         limit, taken_by({}));
  }
  const std::int64_t line = first_line + (too_long - sentences.begin()), tokens = std::ssize(too_long->ids);
  const std::int64_t fitting = longest_that_fits(*too_long);
  fail("etc translate",
       "line {}: its {} pieces and a translation of up to {} take {} with a beam of {}, more than the memory limit of "
       "{}; {}",
       line, tokens, longest_translation(options_, tokens), taken_by({*too_long}), options_.beam, limit,
       fitting == 0 ? "none fits (set --beam lower, or take a smaller model)"
                    : fmt::format("one of up to {} fits (set --max-len-b, --max-len-a or --beam lower)", fitting));
}

}  // namespace etc::translation
