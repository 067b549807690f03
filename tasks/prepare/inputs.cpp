#include "tasks/prepare/inputs.h"

#include "data/readers/byte_stream.h"
#include "etc_core/base/error.h"

namespace etc::prepare {

namespace fs = std::filesystem;

void check_input(const fs::path& input) {
  if (input == data::kStandardInput) return;
  std::error_code error;
  const fs::file_status status = fs::status(input, error);
  if (status.type() == fs::file_type::not_found) {
    fail("etc prepare", "input {}: no such file", input.string());
  }
  if (error) fail("etc prepare", "input {}: cannot open: {}", input.string(), error.message());
  if (fs::is_directory(status)) {
    fail("etc prepare", "input {}: expected a file, got a folder", input.string());
  }
}

bool is_stream(const fs::path& input) {
  std::error_code error;
  return input == data::kStandardInput || !fs::is_regular_file(input, error);
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::exists(a, error) && fs::exists(b, error) && fs::equivalent(a, b, error);
}

}  // namespace etc::prepare
