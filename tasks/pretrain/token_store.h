// A tokenised text in files: pieces, sentences and documents, with sequential writes and random reads.
//
// Each input file has a part of its own, so that a resumed run need not cut a finished file again. A document may begin in
// one part and end in a later one (pretraining 1.1), so documents are determined when all parts exist.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <vector>

#include "tasks/pretrain/instances.h"
#include "tasks/pretrain/number_file.h"

namespace etc::pretrain {

// Consecutive sentences of a text, and where documents begin among them.
struct TokenizedText {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> sentence_ends;  // into ids; ascending, no sentence is empty
  std::vector<std::int64_t>
      document_begins;  // sentence indices, ascending; the number of sentences if a document begins after the last
};

struct StorePaths {
  std::filesystem::path pieces;     // int32: ids
  std::filesystem::path sentences;  // int64: the end of each among the part's pieces
  std::filesystem::path begins;     // int64: indices of the part's sentences that begin a document
};

class StoreWriter {
 public:
  explicit StoreWriter(const StorePaths& paths)
      : pieces_(paths.pieces), sentences_(paths.sentences), begins_(paths.begins) {}

  void add(const TokenizedText& text);
  void begin_document();  // with the next added sentence
  void finish();

 private:
  NumberWriter<std::int32_t> pieces_;
  NumberWriter<std::int64_t> sentences_, begins_;
  std::int64_t last_begin_ = -1;
  std::vector<std::int64_t> ends_;  // scratch
};

// Numbers of kept and dropped documents of all parts.
struct DocumentCounts {
  std::int64_t kept = 0;
  std::int64_t too_short = 0;
};

// Writes the documents of all parts, in order, to a file of TextIndex::Document. Documents with fewer than least_sentences
// are left out; those without sentences are not counted at all.
DocumentCounts write_documents(const std::vector<StorePaths>& parts, std::int64_t least_sentences,
                               const std::filesystem::path& path);

// All parts as one text. Immutable; each thread reads through a StoredText of its own.
class TokenStore {
 public:
  // budget: bytes that may be held in memory (RandomAccessFile::hold).
  TokenStore(const std::vector<StorePaths>& parts, const std::filesystem::path& documents, std::int64_t& budget);

  std::int64_t sentences() const { return parts_.empty() ? 0 : parts_.back().sentences.end; }
  // Appends the ids of these pieces.
  void read_pieces(PieceRange range, std::vector<std::int64_t>& ids) const;

 private:
  friend class StoredText;
  struct Numbers {  // offsets of a part within the whole text
    std::int64_t begin = 0, end = 0;
  };
  struct Part {
    explicit Part(const StorePaths& paths) : piece_file(paths.pieces), sentence_file(paths.sentences) {}
    RandomAccessFile piece_file, sentence_file;
    Numbers pieces, sentences;
  };
  std::deque<Part> parts_;
  RandomAccessFile documents_;
};

// One thread's view of a store.
class StoredText : public TextIndex {
 public:
  explicit StoredText(const TokenStore& store);

  std::int64_t documents() const override { return documents_.count(); }
  Document document(std::int64_t number) override { return documents_.at(number); }
  std::int64_t first_piece(std::int64_t sentence) override;

 private:
  const TokenStore& store_;
  NumberReader<Document> documents_;
  std::vector<NumberReader<std::int64_t>> sentences_;  // of each part
  std::size_t part_ = 0;                               // part of the sentence that was read last
};

}  // namespace etc::pretrain
