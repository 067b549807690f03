// The base of preparations whose examples are made of whole texts, and none of a single record.
#pragma once

#include "tasks/prepare/preparation.h"
#include "tasks/prepare/run.h"

namespace etc::prepare {

class WholeTextPreparation : public Preparation, public WholeRun {
 public:
  // An Error: there is no such example.
  Converted convert_record(data::RecordSlice& record) const final;
  const WholeRun* whole_run() const final { return this; }
};

}  // namespace etc::prepare
