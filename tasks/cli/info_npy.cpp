// etc info on NumPy arrays.
#include "data/readers/npy_header.h"
#include "etc_core/base/grouped.h"
#include "etc_core/base/shape.h"
#include "tasks/cli/info_results.h"
#include "tasks/cli/info_text.h"

namespace etc::cli {

void describe_npy(const std::filesystem::path& path) {
  const data::NpyHeader header = data::read_npy_header(path);
  print_entry("NumPy array", path.string());
  print_entry("type", header.type);
  print_entry("shape", shape_text(header.shape));
  if (header.column_major) print_entry("order", "columns first (Fortran)");
  print_entry("values", grouped(header.values));
  print_entry("bytes of the values", grouped(header.bytes));
}

}  // namespace etc::cli
