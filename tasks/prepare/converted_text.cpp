#include "tasks/prepare/converted_text.h"

#include "tasks/prepare/bytes.h"

namespace etc::prepare {

std::string text_of(const Converted& converted) {
  ByteWriter out;
  out.put(converted.id);
  out.put(converted.examples);
  out.put(converted.gold.has_value());
  if (converted.gold) out.put(*converted.gold);
  out.put(converted.reject_details);
  out.put(converted.was_candidate);
  out.put(converted.faults);
  return out.take();
}

Converted converted_of(std::string_view text) {
  ByteReader in(text);
  Converted converted;
  in.get(converted.id);
  in.get(converted.examples);
  if (in.get<bool>()) in.get(converted.gold.emplace());
  in.get(converted.reject_details);
  converted.was_candidate = in.get<bool>();
  in.get(converted.faults);
  in.require_end();
  return converted;
}

}  // namespace etc::prepare
