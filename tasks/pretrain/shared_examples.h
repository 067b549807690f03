// Instances of a corpus in a random order → examples, made by all threads of all processes that can read the files beside
// the output: the processes on the first one's machine, or all processes if the folder is shared.
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

// The files that a process needs to make examples.
struct CorpusFiles {
  std::vector<StorePaths> texts;
  std::filesystem::path documents, instances;
  std::int64_t examples = 0;  // number of instances in the file
};

// Serialised for other processes, which may run in another working directory.
std::string text_of(const CorpusFiles& files);
CorpusFiles corpus_files_of(const std::string& text);

class SharedExamples : NotCopied {
 public:
  // Collective call. store: null if this process cannot read the files and therefore makes no examples. budget: bytes that
  // may be held in memory. maker and store must outlive this object.
  SharedExamples(const ExampleMaker& maker, const PrepareConfig& config, const CorpusFiles& files,
                 const TokenStore* store, std::int64_t& budget, Communicator& processes);

  std::int64_t window() const { return window_; }  // maximum count for make()

  // Makes the examples [first, first + count) of the order in places [window]; the first process receives all of them.
  // Collective call. meanwhile: runs concurrently with the work.
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
  std::vector<std::int64_t> makers_before_;  // [processes + 1] for each rank: number of lower ranks that make examples
};

// One view of the store for each thread.
std::vector<std::unique_ptr<StoredText>> views_of(const TokenStore& store);

// The part of the processes other than the first, until all examples are made.
void help_to_make_examples(const ExampleMaker& maker, const PrepareConfig& config, const CorpusFiles& files,
                           Communicator& processes);

}  // namespace etc::pretrain
