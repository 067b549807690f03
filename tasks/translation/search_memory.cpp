#include "tasks/translation/search_memory.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "etc_core/base/byte_size.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"

namespace etc::translation {

namespace {

// Buffers of the readers of text and prefixes, which are made later.
constexpr std::int64_t kReading = 2'600'000;
constexpr std::int64_t kOfVector = 32;  // overhead of an allocation

// The lines and their pieces, in vectors with up to twice the capacity.
std::int64_t bytes_of_lines(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines) {
  constexpr std::int64_t kOfLine = 2 * sizeof(SourceLine) + sizeof(TranslationSource) + 4 * kOfVector;
  std::int64_t bytes = kOfLine * std::ssize(lines);
  for (const SourceLine& line : lines) bytes += std::ssize(line.text) + std::ssize(line.prefix) + std::ssize(line.text);
  for (const TranslationSource& sentence : sentences)
    bytes += 2 * std::ssize(sentence.ids) * std::int64_t{sizeof(std::int32_t)};
  return bytes;
}

// Growing hypotheses: each exists twice, before and after its extension, in vectors with up to twice the capacity.
std::int64_t bytes_of_translation(const TranslationSource& sentence, const SearchOptions& search) {
  constexpr std::int64_t kOfPiece = 4 * (sizeof(std::int32_t) + sizeof(double));
  const std::int64_t tokens = std::ssize(sentence.ids);
  constexpr std::int64_t kOfHypothesis = 2 * (sizeof(Hypothesis) + 2 * kOfVector);
  return !is_empty_source(tokens) ? search.beam * (longest_translation(search, tokens) * kOfPiece + kOfHypothesis) : 0;
}

// The memory of `count` sentences, linear in their number, from that of one and of two.
ProcessMemory extrapolated(const ProcessMemory& one, const ProcessMemory& two, std::int64_t count) {
  const auto more = [&](std::int64_t a, std::int64_t b) { return (count - 1) * (b - a); };
  ProcessMemory all = one;
  for (std::size_t i = 0; i < all.buffers.at_peak.size(); ++i)
    all.buffers.at_peak[i] += more(one.buffers.at_peak[i], two.buffers.at_peak[i]);
  all.buffers.peak += more(one.buffers.peak, two.buffers.peak);
  all.beside += more(one.beside, two.beside);
  return all;
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
  if (limit > 0) fit_.hold(kReading);
  model_ = computing_ = expected({}, options_);
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

// The batches that are largest in one component of Size, without those covered by counted batches.
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

// Counts the largest batches; with a limit, stops at the first that exceeds it.
void SearchMemory::count_batches(std::span<const TranslationSource> sentences, std::int64_t batch_tokens) {
  for (const Batch& batch : largest_batches(sentences, batch_tokens)) {
    const ProcessMemory own = expected(batch, options_);
    if (own.peak() > computing_.peak()) computing_ = own;
    counted_.push_back(size_of(batch));
    if (limit_ > 0 && computing_.peak() > limit_) return;
  }
}

// Memory of translations on the host; 0 if a device computes.
std::int64_t SearchMemory::bytes_of_translations(std::span<const TranslationSource> sentences) const {
  if (compute_.device != Device::cpu) return 0;
  std::int64_t bytes = 0;
  for (const TranslationSource& sentence : sentences) bytes += bytes_of_translation(sentence, options_);
  return bytes;
}

// with_loading: the peak may be that of loading the weights.
ProcessMemory SearchMemory::expected(const Batch& batch, const SearchOptions& search, bool with_loading) const {
  const auto call = [&](const std::function<void()>& loaded) {
    std::vector<std::unique_ptr<TranslatorModel>> made;
    std::vector<TranslationModel> models;
    for (const Seq2SeqConfig& config : models_) {
      TranslatorModel& model = *made.emplace_back(std::make_unique<TranslatorModel>(config));
      for (const auto& parameter : model.parameters.all()) parameter->allocate();
      model.release_kernels(compute_.type);
      models.push_back({model.encoder, model.decoder});
    }
    if (!with_loading) memory_ledger::reset_peak();
    loaded();
    translate(models, batch, {search, std::ssize(batch) * search.limit});
  };
  return fit_.memory(call);
}

const ProcessMemory& SearchMemory::peak(std::span<const TranslationSource> sentences,
                                        std::span<const SourceLine> lines) {
  count_batches(sentences, batch_tokens_);
  if (compute_.device == Device::cpu) lines_ = std::max(lines_, bytes_of_lines(sentences, lines));
  translations_ = std::max(translations_, bytes_of_translations(sentences));
  peak_ = computing_;
  peak_.beside += lines_ + translations_;
  return peak_;
}

ProcessMemory SearchMemory::estimate(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines,
                                     const SearchPlan& plan) const {
  std::vector<std::size_t> largest;
  std::int64_t most = 0;  // rows of keys and values
  for (std::vector<std::size_t>& numbers : search_batches(sentences, {options_, plan.batch_tokens})) {
    std::int64_t rows = 0;
    for (const std::size_t i : numbers) {
      const std::int64_t tokens = std::ssize(sentences[i].ids);
      rows += options_.beam * longest_translation(options_, tokens) + tokens;
    }
    if (rows <= most) continue;
    most = rows;
    largest = std::move(numbers);
  }
  ProcessMemory memory = model_;
  if (!largest.empty()) {
    const TranslationSource& longest = sentences[largest.back()];
    const ProcessMemory one = expected({longest}, options_, false), two = expected({longest, longest}, options_, false);
    const ProcessMemory searching = extrapolated(one, two, std::ssize(largest));
    if (searching.peak() > memory.peak()) memory = searching;
  }
  if (compute_.device != Device::cpu) return memory;
  std::int64_t translations = 0;
  std::size_t first = 0;
  for (const std::size_t end : plan.ends) {
    translations = std::max(translations, bytes_of_translations(sentences.subspan(first, end - first)));
    first = end;
  }
  memory.beside += bytes_of_lines(sentences, lines) + translations + (limit_ > 0 ? 0 : kReading);
  return memory;
}

// The memory that must be available for translations: those of all sentences, or of several batches, so that parts are
// seldom smaller than a batch may be.
std::int64_t SearchMemory::bytes_of_parts(std::span<const TranslationSource> sentences,
                                          std::int64_t batch_tokens) const {
  constexpr std::int64_t kBatches = 4;
  std::int64_t most = 0;
  for (const std::vector<std::size_t>& numbers : search_batches(sentences, {options_, batch_tokens})) {
    std::int64_t bytes = 0;
    for (const std::size_t i : numbers) bytes += bytes_of_translations(sentences.subspan(i, 1));
    most = std::max(most, bytes);
  }
  return std::min(bytes_of_translations(sentences), batch_tokens > 1 ? kBatches * most : most);
}

SearchPlan SearchMemory::in_parts(std::span<const TranslationSource> sentences, std::int64_t room) {
  SearchPlan plan{batch_tokens_, {}};
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const std::int64_t own = bytes_of_translations(sentences.subspan(i, 1));
    if (bytes > 0 && bytes + own > room) {
      plan.ends.push_back(i);
      bytes = 0;
    }
    bytes += own;
  }
  plan.ends.push_back(sentences.size());
  if (plan.ends.size() > 1 && !std::exchange(parts_told_, true)) {
    log::info("memory limit {}: up to {} lines are translated at a time, of {} that are read (--window)",
              byte_size_text(limit_), plan.ends.front(), sentences.size());
  }
  return plan;
}

SearchPlan SearchMemory::plan(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines,
                              std::int64_t first_line) {
  if (compute_.device == Device::cpu) lines_ = std::max(lines_, bytes_of_lines(sentences, lines));
  for (std::int64_t tokens = batch_tokens_; tokens > 0; tokens /= 2) {
    count_batches(sentences, tokens);
    const std::int64_t room = limit_ - computing_.peak() - lines_;
    if (room >= bytes_of_parts(sentences, tokens)) {
      if (tokens < batch_tokens_) {
        log::info("memory limit {}: up to {} tokens are searched together, of {}", byte_size_text(limit_), tokens,
                  options_.batch_tokens);
      }
      batch_tokens_ = tokens;
      return in_parts(sentences, room);
    }
    counted_.clear();  // smaller batches take less
    computing_ = model_;
  }
  refuse(sentences, first_line);
}

// The memory for one sentence, including the lines that are read and its own translation.
std::int64_t SearchMemory::taken_alone(const TranslationSource& sentence, const SearchOptions& search) const {
  const std::int64_t texts = compute_.device == Device::cpu ? lines_ + bytes_of_translation(sentence, search) : 0;
  return expected({sentence}, search).peak() + texts;
}

// The longest translation of one sentence that fits, by bisection; the maximum length does not fit.
std::int64_t SearchMemory::longest_that_fits(const TranslationSource& sentence) const {
  std::int64_t good = 0, bad = longest_translation(options_, std::ssize(sentence.ids));
  while (bad - good > 1) {
    const std::int64_t middle = (good + bad) / 2;
    SearchOptions shorter = options_;
    shorter.max_len_a = 0;
    shorter.max_len_b = middle;
    (taken_alone({sentence.ids, {}}, shorter) <= limit_ ? good : bad) = middle;
  }
  return good;
}

// taken_beside: memory of everything except the lines.
void SearchMemory::refuse_window(std::int64_t lines, std::int64_t taken_beside) const {
  const auto fitting = static_cast<double>(limit_ - taken_beside) / static_cast<double>(lines_);
  fail(
      "etc translate",
      "the {} lines that are read at a time take {} beside the {} of all else, more than the memory limit of {} (about "
      "{} fit: set --window lower)",
      lines, byte_size_text(lines_), byte_size_text(taken_beside), byte_size_text(limit_),
      std::max<std::int64_t>(1, static_cast<std::int64_t>(fitting * static_cast<double>(lines))));
}

void SearchMemory::refuse(std::span<const TranslationSource> sentences, std::int64_t first_line) const {
  const std::string limit = byte_size_text(limit_);
  if (model_.peak() > limit_) {
    fail("etc translate", "the memory limit of {} is too low for this model, which takes {} (take a smaller one)",
         limit, byte_size_text(model_.peak()));
  }
  const auto too_long = std::ranges::find_if(sentences, [&](const TranslationSource& sentence) {
    return !sentence.ids.empty() && taken_alone(sentence, options_) > limit_;
  });
  if (too_long == sentences.end()) refuse_window(std::ssize(sentences), model_.peak());
  const std::int64_t taken = taken_alone(*too_long, options_);
  if (taken - lines_ <= limit_ && sentences.size() > 1) refuse_window(std::ssize(sentences), taken - lines_);
  const std::int64_t line = first_line + (too_long - sentences.begin()), tokens = std::ssize(too_long->ids);
  const std::int64_t fitting = longest_that_fits(*too_long);
  fail("etc translate",
       "line {}: its {} pieces and a translation of up to {} take {} with a beam of {}, more than the memory limit of "
       "{}; {}",
       line, tokens, longest_translation(options_, tokens), byte_size_text(taken), options_.beam, limit,
       fitting == 0 ? "none fits (set --beam lower, or take a smaller model)"
                    : fmt::format("one of up to {} fits (set --max-len-b, --max-len-a or --beam lower)", fitting));
}

}  // namespace etc::translation
