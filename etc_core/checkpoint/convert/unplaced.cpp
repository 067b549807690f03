#include "etc_core/checkpoint/convert/unplaced.h"

#include <algorithm>

#include "etc_core/base/error.h"

namespace etc::convert {

bool is_beside_another(const TensorSource& source, std::string_view stored) {
  const std::size_t slash = stored.rfind('/');
  return slash != std::string_view::npos && source.tensors().contains(stored.substr(0, slash));
}

void require_all_matched(const TensorSource& source, std::vector<std::string> faults,
                         const std::vector<std::string>& unplaced) {
  constexpr std::size_t kMostNamed = 4;  // a layer has sixteen, and more names would add no information
  const std::size_t count = faults.size() + unplaced.size();
  if (count == 0) return;
  if (!unplaced.empty()) {
    std::vector<std::string> named;
    for (std::size_t i = 0; i < std::min(unplaced.size(), kMostNamed); ++i) {
      named.push_back(fmt::format("{} {}", unplaced[i], source.at(unplaced[i]).text()));
    }
    const std::size_t more = unplaced.size() - named.size();
    faults.push_back(
        fmt::format("encoder variables without a parameter: {}{} (more layers than the configuration says, or a "
                    "variant of the model "
                    "that computes something else)",
                    fmt::join(named, ", "), more == 0 ? "" : fmt::format(" and {} more", more)));
  }
  fail(source.where(), "{} unmatched: {}", count, fmt::join(faults, "; "));
}

}  // namespace etc::convert
