#include "tasks/pretrain/token_store.h"

#include <algorithm>

namespace etc::pretrain {

void StoreWriter::add(const TokenizedText& text) {
  const std::int64_t pieces = pieces_.count(), sentences = sentences_.count();
  for (const std::int64_t begin : text.document_begins) {
    if (sentences + begin == last_begin_) continue;
    last_begin_ = sentences + begin;
    begins_.add(last_begin_);
  }
  ends_.clear();
  for (const std::int64_t end : text.sentence_ends) ends_.push_back(pieces + end);
  sentences_.add(ends_);
  pieces_.add(text.ids);
}

void StoreWriter::begin_document() {
  add({{}, {}, {0}});
}

void StoreWriter::finish() {
  pieces_.finish();
  sentences_.finish();
  begins_.finish();
}

DocumentCounts write_documents(const std::vector<StorePaths>& parts, std::int64_t least_sentences,
                               const std::filesystem::path& path) {
  NumberWriter<TextIndex::Document> documents(path);
  DocumentCounts counts;
  std::int64_t begin = 0;  // first sentence of the open document
  const auto close = [&](std::int64_t end) {
    if (end - begin >= std::max<std::int64_t>(least_sentences, 1)) {
      documents.add(TextIndex::Document{begin, end - begin});
      ++counts.kept;
    } else if (end > begin) {
      ++counts.too_short;
    }
    begin = end;
  };
  std::int64_t sentences = 0;  // number of sentences in the previous parts
  for (const StorePaths& part : parts) {
    const RandomAccessFile begin_file(part.begins), sentence_file(part.sentences);
    NumberReader<std::int64_t> begins(begin_file);
    for (std::int64_t i = 0; i < begins.count(); ++i) close(sentences + begins.at(i));
    sentences += NumberReader<std::int64_t>(sentence_file).count();
  }
  close(sentences);
  documents.finish();
  return counts;
}

TokenStore::TokenStore(const std::vector<StorePaths>& parts, const std::filesystem::path& documents,
                       std::int64_t& budget)
    : documents_(documents) {
  documents_.hold(budget);
  Numbers pieces, sentences;
  for (const StorePaths& paths : parts) {
    Part& part = parts_.emplace_back(paths);
    pieces = {pieces.end, pieces.end + NumberReader<std::int32_t>(part.piece_file).count()};
    sentences = {sentences.end, sentences.end + NumberReader<std::int64_t>(part.sentence_file).count()};
    part.pieces = pieces;
    part.sentences = sentences;
    part.sentence_file.hold(budget);
    part.piece_file.hold(budget);
  }
}

void TokenStore::read_pieces(PieceRange range, std::vector<std::int64_t>& ids) const {
  const std::int64_t end = range.begin + range.length;
  std::vector<std::int32_t> read;
  for (const Part& part : parts_) {
    const std::int64_t from = std::max(range.begin, part.pieces.begin), to = std::min(end, part.pieces.end);
    if (from >= to) continue;
    read.resize(static_cast<std::size_t>(to - from));
    part.piece_file.read((from - part.pieces.begin) * std::int64_t{sizeof(std::int32_t)}, read.data(),
                         read.size() * sizeof(std::int32_t));
    ids.insert(ids.end(), read.begin(), read.end());
  }
}

StoredText::StoredText(const TokenStore& store) : store_(store), documents_(store.documents_) {
  for (const TokenStore::Part& part : store.parts_) sentences_.emplace_back(part.sentence_file);
}

std::int64_t StoredText::first_piece(std::int64_t sentence) {
  const auto& parts = store_.parts_;
  const auto inside = [&](const TokenStore::Part& part) {
    return part.sentences.begin <= sentence && sentence < part.sentences.end;
  };
  if (parts.empty()) return 0;
  if (!inside(parts[part_])) {
    const auto found = std::find_if(parts.begin(), parts.end(), inside);
    if (found == parts.end()) return parts.back().pieces.end;
    part_ = static_cast<std::size_t>(found - parts.begin());
  }
  const TokenStore::Part& part = parts[part_];
  const std::int64_t own = sentence - part.sentences.begin;
  return part.pieces.begin + (own == 0 ? 0 : sentences_[part_].at(own - 1));
}

}  // namespace etc::pretrain
