// What pre-training learns (pretraining 1, 2).
#pragma once

namespace etc::pretrain {

// mlm: masked pieces alone; mlm_nsp: and whether the second text follows the first (BERT); mlm_cpc: and which hidden
// sentence is which (ETC).
enum class Objective { mlm_nsp, mlm, mlm_cpc };

}  // namespace etc::pretrain
