#include "tasks/prepare/bytes.h"

namespace etc::prepare {

void ByteWriter::put(const data::Fault& fault) {
  put(fault.file);
  put(fault.record_index);
  put(fault.byte_offset);
  put(fault.id);
  put(fault.field);
  put(fault.code);
  put(fault.severity);
  put(fault.message);
  put(fault.details);
}

void ByteWriter::put(const FaultList& faults) {
  put(faults.rows());
  put(faults.quiet_rows());
  put(faults.counted());
}

void ByteReader::get(data::Fault& fault) {
  get(fault.file);
  get(fault.record_index);
  get(fault.byte_offset);
  get(fault.id);
  get(fault.field);
  get(fault.code);
  get(fault.severity);
  get(fault.message);
  get(fault.details);
}

void ByteReader::get(FaultList& faults) {
  const auto rows = get<std::vector<data::Fault>>(), quiet_rows = get<std::vector<data::Fault>>();
  faults = FaultList(rows, quiet_rows, get<std::vector<std::string>>());
}

}  // namespace etc::prepare
