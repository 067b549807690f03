// A tokenized text in memory.
#pragma once

#include <vector>

#include "tasks/pretrain/instances.h"

namespace etc::test {

class TextInMemory : public pretrain::TextIndex {
 public:
  // documents → sentences → pieces
  explicit TextInMemory(const std::vector<std::vector<std::vector<std::int64_t>>>& documents) {
    for (const auto& document : documents) {
      documents_.push_back({std::ssize(begins_) - 1, std::ssize(document)});
      for (const auto& sentence : document) {
        pieces.insert(pieces.end(), sentence.begin(), sentence.end());
        begins_.push_back(std::ssize(pieces));
      }
    }
  }

  std::int64_t documents() const override { return std::ssize(documents_); }
  Document document(std::int64_t number) override { return documents_.at(static_cast<std::size_t>(number)); }
  std::int64_t first_piece(std::int64_t sentence) override { return begins_.at(static_cast<std::size_t>(sentence)); }

  std::vector<std::int64_t> pieces;

 private:
  std::vector<Document> documents_;
  std::vector<std::int64_t> begins_{0};
};

}  // namespace etc::test
