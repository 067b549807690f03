#include "data/readers/json_pass.h"

#include <simdjson.h>

#include "etc_core/base/error.h"

namespace etc::data {

std::int64_t json_pass(const std::filesystem::path& path) {
  simdjson::dom::parser parser;
  simdjson::dom::array records;
  const auto error = parser.load(path.string()).get(records);
  if (error) fail(path.string(), "simdjson: {}", simdjson::error_message(error));
  std::int64_t count = 0;  // not size(): it saturates at 2^24
  for ([[maybe_unused]] const simdjson::dom::element record : records) ++count;
  return count;
}

}  // namespace etc::data
