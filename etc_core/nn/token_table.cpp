#include "etc_core/nn/token_table.h"

#include "etc_core/base/error.h"

namespace etc {

Parameter& token_table(ParameterSet& parameters) {
  for (const char* name : {"etc_document_bert/token_emb_lookup/embedding_table", "bert/embeddings/word_embeddings",
                           "seq2seq/embeddings/tokens", "seq2seq/embeddings/source"}) {
    if (Parameter* table = parameters.find(name)) return *table;
  }
  fail("token_table", "no token table among {} parameters: expected those of an encoder", parameters.all().size());
}

}  // namespace etc
