// The objectives of pre-training (pretraining 1, 2).
#pragma once

namespace etc::pretrain {

// mlm: masked pieces only; mlm_nsp: also whether the second text follows the first (BERT); mlm_cpc: also which hidden
// sentence is which (ETC).
enum class Objective { mlm_nsp, mlm, mlm_cpc };

}  // namespace etc::pretrain
