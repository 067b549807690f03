// Pre-training examples made by hand, and small models for them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/loader/loader.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/task.h"
#include "tests/tasks/small_tokenizer.h"

namespace etc::test {

inline constexpr std::int32_t kCls = 1, kSep = 2, kMask = 3, kFirstWord = 6;  // of pretrain_vocabulary()
inline constexpr std::int64_t kPretrainVocabulary = 64;

// [PAD] [CLS] [SEP] [MASK] [UNK] [unused0] and words w6 … w63.
std::string pretrain_vocabulary();

// `[CLS] A [SEP] B [SEP]` with stored masks. The word numbers of B continue those of A or start elsewhere, according to
// the label. A pure function of the ordinal; lengths differ.
data::LoadedExample pair_example(std::int64_t ordinal);

// `[CLS]` and sentences, each with consecutive word numbers from its own start; with stored masks and hidden sentences.
data::LoadedExample sentences_example(std::int64_t ordinal);

// The example without its stored masks.
data::LoadedExample without_masks(data::LoadedExample example);

// Prepared data of make(first) … make(first + count − 1).
void write_pretrain_dataset(const std::filesystem::path& path, data::LoadedExample (*make)(std::int64_t),
                            std::int64_t first, std::int64_t count, bool masks = true);

DenseConfig pretrain_dense();  // two layers, H = 16, without dropout
EtcConfig pretrain_etc();      // the same sizes; hard g2l

// The pre-training task with these keys for a model, using pretrain_vocabulary().
std::unique_ptr<Task> pretrain_task(const Json& keys, const EncoderConfig& model);

}  // namespace etc::test
