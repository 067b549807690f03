// Base class of preparations whose examples are made from whole texts, not from single records.
#pragma once

#include "tasks/prepare/preparation.h"
#include "tasks/prepare/run.h"

namespace etc::prepare {

class WholeTextPreparation : public Preparation, public WholeRun {
 public:
  // Always throws Error: there are no examples of single records.
  Converted convert_record(data::RecordSlice& record) const final;
  const WholeRun* whole_run() const final { return this; }
};

}  // namespace etc::prepare
