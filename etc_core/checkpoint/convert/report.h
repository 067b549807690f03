// A report of what a conversion did with every tensor of the source and of the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/base/json_fwd.h"

namespace etc::convert {

inline constexpr const char* kOptimiserSlot = "optimiser slot";  // a reason of LeftOut that text() only counts
inline constexpr const char* kUnknownTensor = "unknown";         // no known reason; an error for an encoder's tensor

struct ConversionReport {
  struct Copied {
    std::string name;
    std::vector<std::int64_t> shape;
    std::string from;  // the source's name, and what was done to it: "transposed", "row 0 in all rows"
  };
  struct Fresh {
    std::string name;
    std::vector<std::int64_t> shape;
    std::string how;  // "zeros", "normal with deviation 0.5"
  };
  struct LeftOut {
    std::string name;
    std::string what;  // type and shape
    std::string why;
  };

  std::string source;  // file or prefix
  std::string kind;    // "TensorFlow ETC checkpoint", …
  std::vector<Copied> copied;
  std::vector<Fresh> initialised;
  std::vector<LeftOut> left_out;
  std::vector<std::string> notes;

  Json to_json() const;
  // The report as readable text: counts, and lists in which the layers of a model share a line.
  std::string text() const;
};

}  // namespace etc::convert
