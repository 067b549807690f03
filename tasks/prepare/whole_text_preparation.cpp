#include "tasks/prepare/whole_text_preparation.h"

#include "etc_core/base/error.h"

namespace etc::prepare {

Converted WholeTextPreparation::convert_record(data::RecordSlice& /*record*/) const {
  fail(schema().task, "no example is made of one record: expected whole texts");
}

}  // namespace etc::prepare
