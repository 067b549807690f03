// The objectives of pre-training (pretraining 1, 2).
#pragma once

#include <string>

#include "etc_core/base/json_fwd.h"

namespace etc::pretrain {

// mlm: masked pieces only; mlm_nsp: also whether the second text follows the first (BERT); mlm_cpc: also which hidden
// sentence is which (ETC).
enum class Objective { mlm_nsp, mlm, mlm_cpc };

// Whether all pieces of a word or none are masked: the value of the key whole_word_mask, or the objective's default where
// it is null. Throws UsageError "where: shown: expected true, false or null, got …".
bool masks_whole_words(const Json& key, Objective objective, const std::string& where, const std::string& shown);

}  // namespace etc::pretrain
