// Instances of a corpus in a random order → examples, made by all threads of all processes that can read the files beside
// the output: those of the first one's machine, or all where the folder is shared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/loader/order.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/comm/communicator.h"
#include "tasks/pretrain/example_maker.h"
#include "tasks/pretrain/random_order.h"
#include "tasks/pretrain/token_store.h"

namespace etc::pretrain {

// What a process needs to make examples.
struct CorpusFiles {
  std::vector<StorePaths> texts;
  std::filesystem::path documents, instances;
  std::int64_t examples = 0;  // instances in their file
};

// For the way to other processes of this program, which may run in another folder.
std::string text_of(const CorpusFiles& files);
CorpusFiles corpus_files_of(const std::string& text);

class SharedExamples : NotCopied {
 public:
  // Several processes make it together. store: null where this process cannot read it, and so makes nothing. budget: of
  // what may be held in memory. maker and store outlive this object.
  SharedExamples(const ExampleMaker& maker, const PrepareConfig& config, const CorpusFiles& files,
                 const TokenStore* store, std::int64_t& budget, Communicator& processes);

  std::int64_t window() const { return window_; }  // examples that make() takes at most

  // Examples [first, first + count) of the order, in the first process all of them, into places [window]. Of several
  // processes all call it. meanwhile: runs beside the work.
  void make(std::int64_t first, std::int64_t count, std::vector<ExamplePlace>& places,
            const std::function<void()>& meanwhile);

 private:
  data::Share share(int rank, std::int64_t count) const;
  void gather(std::int64_t count, std::vector<ExamplePlace>& places);

  const ExampleMaker& maker_;
  const TokenStore* store_;
  Communicator& processes_;
  std::optional<RandomAccessFile> instances_;
  RandomOrder order_;
  std::vector<std::unique_ptr<StoredText>> texts_;  // a view of the store for each thread
  std::int64_t window_;
  std::vector<std::int64_t> makers_before_;  // [processes + 1] of each rank: how many of those before it make examples
};

// One view of the store for each thread.
std::vector<std::unique_ptr<StoredText>> views_of(const TokenStore& store);

// What another process than the first does until all examples are made.
void help_to_make_examples(const ExampleMaker& maker, const PrepareConfig& config, const CorpusFiles& files,
                           Communicator& processes);

}  // namespace etc::pretrain
