#include "bench/json_pass.h"

#include <simdjson.h>

#include "etc_core/base/error.h"

namespace etc::bench {

namespace {

void check(simdjson::error_code error, const std::filesystem::path& path) {
  if (error) fail(path.string(), "simdjson: {}", simdjson::error_message(error));
}

std::int64_t pass_over_array(const std::filesystem::path& path) {
  simdjson::dom::parser parser;
  simdjson::dom::array records;
  check(parser.load(path.string()).get(records), path);
  std::int64_t count = 0;  // not size(): it saturates at 2^24
  for ([[maybe_unused]] const simdjson::dom::element record : records) ++count;
  return count;
}

std::int64_t pass_over_lines(const std::filesystem::path& path) {
  constexpr std::size_t kLongestLine = 32u << 20;  // bytes per batch in which simdjson looks for line ends
  simdjson::dom::parser parser;
  simdjson::dom::document_stream records;
  check(parser.load_many(path.string(), kLongestLine).get(records), path);
  std::int64_t count = 0;
  for (auto record : records) {
    check(record.error(), path);
    ++count;
  }
  if (records.truncated_bytes() > 0) fail(path.string(), "simdjson: the last record is cut short");
  return count;
}

}  // namespace

std::int64_t json_pass(const std::filesystem::path& path, data::RecordLayout layout) {
  return layout == data::RecordLayout::lines ? pass_over_lines(path) : pass_over_array(path);
}

}  // namespace etc::bench
