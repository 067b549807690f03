#include "tasks/pretrain/shared_examples.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "tasks/prepare/bytes.h"
#include "tasks/prepare/record_walk.h"

namespace etc::pretrain {

namespace {

constexpr std::int64_t kPerTask = 16;  // instances
constexpr const char *kCan = "can", *kCannot = "cannot";

std::int64_t window_of(const CorpusFiles& files, std::int64_t max_seq_length) {
  constexpr std::int64_t kPieces = std::int64_t{1} << 18;
  const std::int64_t most = std::clamp<std::int64_t>(kPieces / max_seq_length, kPerTask, 4096);
  // Constructing an ExamplePlace costs some microseconds, so a small text gets a small window.
  return std::min(most, std::max(files.examples / 32, 16 * kPerTask));
}

std::string absolute_text(const std::filesystem::path& path) {
  return std::filesystem::absolute(path).string();
}

}  // namespace

std::string text_of(const CorpusFiles& files) {
  prepare::ByteWriter out;
  out.put(files.texts.size());
  for (const StorePaths& text : files.texts) {
    for (const auto& path : {text.pieces, text.sentences, text.begins}) out.put(absolute_text(path));
  }
  out.put(absolute_text(files.documents));
  out.put(absolute_text(files.instances));
  out.put(files.examples);
  return out.take();
}

CorpusFiles corpus_files_of(const std::string& text) {
  prepare::ByteReader in(text);
  CorpusFiles files;
  files.texts.resize(in.get<std::size_t>());
  for (StorePaths& paths : files.texts) {
    for (auto* path : {&paths.pieces, &paths.sentences, &paths.begins}) *path = in.get<std::string>();
  }
  files.documents = in.get<std::string>();
  files.instances = in.get<std::string>();
  in.get(files.examples);
  in.require_end();
  return files;
}

std::vector<std::unique_ptr<StoredText>> views_of(const TokenStore& store) {
  std::vector<std::unique_ptr<StoredText>> all;
  for (int t = 0; t < thread_count(); ++t) all.push_back(std::make_unique<StoredText>(store));
  return all;
}

SharedExamples::SharedExamples(const ExampleMaker& maker, const PrepareConfig& config, const CorpusFiles& files,
                               const TokenStore* store, std::int64_t& budget, Communicator& processes)
    : maker_(maker),
      store_(store),
      processes_(processes),
      order_(files.examples, seed_for(config.random_seed, DrawnFor::order)),
      window_(window_of(files, *config.max_seq_length)) {
  if (store_ != nullptr) {
    instances_.emplace(files.instances);
    instances_->hold(budget);
    texts_ = views_of(*store_);
  }
  makers_before_ = {0};
  for (const std::string& said : processes_.gather(store_ != nullptr ? kCan : kCannot)) {
    makers_before_.push_back(makers_before_.back() + (said == kCan ? 1 : 0));
  }
}

// A rank's share of the examples of a window; empty for a process that cannot make any.
data::Share SharedExamples::share(int rank, std::int64_t count) const {
  const auto r = static_cast<std::size_t>(rank);
  const std::int64_t before = makers_before_[r];
  if (makers_before_[r + 1] == before) return {0, 0};
  return data::share_of(count, static_cast<int>(before), static_cast<int>(makers_before_.back()));
}

void SharedExamples::make(std::int64_t first, std::int64_t count, std::vector<ExamplePlace>& places,
                          const std::function<void()>& meanwhile) {
  const data::Share own = share(processes_.rank(), count);
  parallel_for(1 + (own.end - own.begin + kPerTask - 1) / kPerTask, [&](std::int64_t task, int thread) {
    if (task == 0) return meanwhile();
    const std::int64_t begin = own.begin + (task - 1) * kPerTask;
    for (std::int64_t i = begin; i < std::min(begin + kPerTask, own.end); ++i) {
      Instance instance;
      instances_->read(order_.at(first + i) * std::int64_t{sizeof instance}, &instance, sizeof instance);
      maker_.make(instance, *store_, *texts_[static_cast<std::size_t>(thread)], places[static_cast<std::size_t>(i)]);
    }
  });
  if (makers_before_.back() > 1) gather(count, places);
}

void SharedExamples::gather(std::int64_t count, std::vector<ExamplePlace>& places) {
  prepare::ByteWriter own;
  if (!processes_.first()) {
    const data::Share mine = share(processes_.rank(), count);
    for (std::int64_t i = mine.begin; i < mine.end; ++i) places[static_cast<std::size_t>(i)].put_into(own);
  }
  const std::vector<std::string> all = collect(processes_, own.text());
  if (!processes_.first()) return;
  parallel_for(std::ssize(all) - 1, [&](std::int64_t other) {
    const auto rank = static_cast<int>(other) + 1;
    const data::Share theirs = share(rank, count);
    prepare::ByteReader in(all[static_cast<std::size_t>(rank)]);
    for (std::int64_t i = theirs.begin; i < theirs.end; ++i) places[static_cast<std::size_t>(i)].take_from(in);
    in.require_end();
  });
}

void help_to_make_examples(const ExampleMaker& maker, const PrepareConfig& config, const CorpusFiles& files,
                           Communicator& processes) {
  std::int64_t budget = kHeldBytes;
  std::optional<TokenStore> store;
  try {
    const RandomAccessFile instances(files.instances);
    if (instances.size() == files.examples * std::int64_t{sizeof(Instance)}) {
      store.emplace(files.texts, files.documents, budget);
    }
  } catch (const Error&) {
    store.reset();  // this process runs on another machine
  }
  SharedExamples examples(maker, config, files, store ? &*store : nullptr, budget, processes);
  std::vector<ExamplePlace> places(store ? static_cast<std::size_t>(examples.window()) : 0);
  for (std::int64_t first = 0; first < files.examples; first += examples.window()) {
    examples.make(first, std::min(examples.window(), files.examples - first), places, [] {});
    prepare::stop_helping_if_asked();
  }
}

}  // namespace etc::pretrain
