// The settings by which the masks of an example are drawn while training: those of the run and, where it gives none, those
// that its data were prepared with (pretraining 1.3, 1.8).
#pragma once

#include <string>

#include "data/dataset.h"
#include "tasks/pretrain/masking.h"
#include "tasks/pretrain/options.h"

namespace etc::pretrain {

// Each setting is the run's, else the data's, else the default of Options. A limit of predictions given to the preparation
// counts only where its instances can have more: another share of masked pieces in the run is not limited by the
// preparation's default. mask_id and vocab_size are left at 0.
MaskRules rules_of(const data::Example& example, const Options& options);

// Throws Error when the run gives a setting that cannot be followed, because masks drawn with another one are stored with
// the example. Data that do not state their settings are accepted, and so is the usual share, 0.15.
void require_followed(const data::Example& example, const Options& options, const std::string& where);

}  // namespace etc::pretrain
