#include "etc_core/checkpoint/convert/bert/dense_bert.h"

#include "etc_core/checkpoint/convert/bert/bert_names.h"

namespace etc::convert {

DenseConfig dense_config_for(const BertConfig& bert) {
  DenseConfig config;
  take_common_fields(bert, config);
  config.segment_vocab_size = bert.type_vocab_size;
  config.max_absolute_position_embeddings = bert.max_position_embeddings;
  config.layer_norm_epsilon = bert.layer_norm_eps;
  return config;
}

ForeignEncoder bert_encoder(const BertConfig& bert, BertKind kind, const TensorSource& source) {
  ForeignEncoder foreign;
  foreign.kind = kind == BertKind::roberta ? "RoBERTa" : "BERT";
  foreign.config = dense_config_for(bert);
  const std::int64_t first = bert.first_position(kind);
  foreign.config.max_absolute_position_embeddings -= first;
  if (has_erf_gelu(source, bert)) foreign.config.hidden_act = "gelu_erf";
  foreign.place = [first](std::string_view stored) -> StoredPlace {
    BertName known = bert_name(stored);
    const std::int64_t row = known.name == "bert/embeddings/position_embeddings" ? first : 0;
    return {std::move(known.name), known.transposed ? StoredForm::transposed : StoredForm::plain, row};
  };
  foreign.is_zero = [](std::string_view) { return false; };
  foreign.why_left_out = [](std::string_view stored) -> std::string {
    const bool head = bert_name(stored).name.starts_with("cls/");
    return head ? "head (--without-heads)" : why_left_out(stored, true);
  };
  foreign.is_encoder = is_bert_encoder;
  for (std::string note : {block_sparse_note(bert), plain_scores_note(bert)}) {
    if (!note.empty()) foreign.notes.push_back(std::move(note));
  }
  return foreign;
}

}  // namespace etc::convert
