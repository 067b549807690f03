// Random document structures for the label tests, and the labels' formulas evaluated pair by pair, without code of the
// library.
#pragma once

#include <random>

#include "tests/sparse/labels/side_inputs.h"

namespace etc::test {

using Ids = std::vector<std::int32_t>;

// Builder input of one multihop example; `padding` tokens at both ends of the sequences.
struct MultihopCase {
  Ids long_breakpoints, paragraph_ids, sentence_ids, global_breakpoints, ignore_g2l, ignore_l2g, linked;
  sparse::MultihopArrays view(bool flat = false) const {
    return {long_breakpoints, paragraph_ids, sentence_ids, global_breakpoints, ignore_g2l, ignore_l2g, linked, flat};
  }
};
MultihopCase random_multihop(std::mt19937& random, int long_padding, int global_padding);

// The formulas of etc-core 8.3 and 8.1, one pair at a time.
SideInputs naive_multihop(const MultihopCase& example, const sparse::LabelOptions& options);
SideInputs naive_generic(const Ids& long_ids, const Ids& global_ids, const Ids& sentence_ids,
                         const sparse::LabelOptions& options);

}  // namespace etc::test
