#include "sparse/labels/labels.h"

#include <vector>

#include "etc_core/base/parallel.h"
#include "tests/support/catch.h"

using namespace etc::sparse;
using Ids = std::vector<std::int32_t>;
using Labels = std::vector<std::uint8_t>;

namespace {

Labels values_of(const etc::Buffer<std::uint8_t>& buffer) {
  return {buffer.begin(), buffer.end()};
}

// B=2, L=2, G=1, radius 1, with masks and ids of every type.
struct Arrays {
  Ids l2l_mask{1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1}, l2l_ids{2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1};
  Ids l2g_mask{1, 1, 0, 1}, l2g_ids{3, 4, 3, 4};
  Ids g2g_mask{1, 1}, g2g_ids{0, 0};
  Ids g2l_mask{1, 0, 1, 1}, g2l_ids{4, 4, 3, 3};
  MasksAndIds view() const {
    return {.batch = 2,
            .length = 2,
            .globals = 1,
            .radius = 1,
            .l2l_mask = l2l_mask.data(),
            .l2g_mask = l2g_mask.data(),
            .g2g_mask = g2g_mask.data(),
            .g2l_mask = g2l_mask.data(),
            .l2l_ids = l2l_ids.data(),
            .l2g_ids = l2g_ids.data(),
            .g2g_ids = g2g_ids.data(),
            .g2l_ids = g2l_ids.data()};
  }
};

}  // namespace

TEST_CASE("a label is the id where the mask is 1 and 255 where it is 0", "[labels]") {
  const AttentionLabels labels = labels_from_masks_and_ids(Arrays().view(), 6);
  REQUIRE(values_of(labels.l2g) == Labels{3, 4, 255, 4});
  REQUIRE(values_of(labels.g2g) == Labels{0, 0});
  REQUIRE(values_of(labels.g2l) == Labels{4, 255, 3, 3});
  REQUIRE(labels.long_relative);
  REQUIRE(labels.global_relative);
}

TEST_CASE("window entries outside the sequence are masked whatever the mask says", "[labels]") {
  const AttentionLabels labels = labels_from_masks_and_ids(Arrays().view(), 6);
  REQUIRE(values_of(labels.l2l) == Labels{255, 0, 1, 2, 0, 255, 255, 0, 1, 255, 0, 255});
}

TEST_CASE("types without mask and ids stay null, each on its own", "[labels]") {
  const Arrays arrays;
  MasksAndIds view = arrays.view();
  view.l2l_ids = view.l2g_ids = view.l2l_mask = nullptr;
  const AttentionLabels labels = labels_from_masks_and_ids(view, 6);
  REQUIRE(labels.l2l.empty());
  REQUIRE(values_of(labels.l2g) == Labels{0, 0, 255, 0});
  REQUIRE_FALSE(labels.long_relative);
  REQUIRE(labels.global_relative);
  REQUIRE_FALSE(labels.g2l.empty());
}

TEST_CASE("ids without a mask are all visible", "[labels]") {
  const Arrays arrays;
  MasksAndIds view = arrays.view();
  view.g2l_mask = nullptr;
  REQUIRE(values_of(labels_from_masks_and_ids(view, 6).g2l) == Labels{4, 4, 3, 3});
}

TEST_CASE("an id that is not below R is an error where it is visible", "[labels]") {
  Arrays arrays;
  arrays.l2g_ids[2] = 4000;  // masked, hence ignored
  REQUIRE_NOTHROW(labels_from_masks_and_ids(arrays.view(), 5));
  arrays.l2g_ids[3] = 40;
  REQUIRE_THROWS_WITH(labels_from_masks_and_ids(arrays.view(), 5),
                      "labels: l2g: example 1, long 1, global 0: expected a relative id in [0, R=5), got 40");
  arrays.l2g_ids[3] = -1;
  REQUIRE_THROWS_WITH(labels_from_masks_and_ids(arrays.view(), 5),
                      "labels: l2g: example 1, long 1, global 0: expected a relative id in [0, R=5), got -1");
}

TEST_CASE("a mask other than 0 and 1 is an error", "[labels]") {
  Arrays arrays;
  arrays.l2l_mask[4] = 2;
  REQUIRE_THROWS_WITH(labels_from_masks_and_ids(arrays.view(), 6),
                      "labels: l2l: example 0, long 1, window column 1: expected a mask of 0 or 1, got 2");
}

TEST_CASE("ids for one type of a side only are an error", "[labels]") {
  const Arrays arrays;
  MasksAndIds view = arrays.view();
  view.l2g_ids = nullptr;
  REQUIRE_THROWS_WITH(
      labels_from_masks_and_ids(view, 6),
      "labels: l2l and l2g share one softmax: expected relative ids for both or for neither, got only l2l");
  view = arrays.view();
  view.g2g_ids = nullptr;
  REQUIRE_THROWS_WITH(
      labels_from_masks_and_ids(view, 6),
      "labels: g2g and g2l share one softmax: expected relative ids for both or for neither, got only g2l");
}

TEST_CASE("ids for a model without relative vectors are an error", "[labels]") {
  REQUIRE_THROWS_WITH(
      labels_from_masks_and_ids(Arrays().view(), 0),
      "labels: relative ids are given, but the model has no relative vectors (relative_vocab_size is null)");
  REQUIRE_THROWS_WITH(labels_from_masks_and_ids(Arrays().view(), 256),
                      "labels: relative_vocab_size: expected 0 … 255 (labels are one byte), got 256");
}

TEST_CASE("the first bad pair is named whatever the thread count", "[labels]") {
  const std::int64_t L = 1000, W = 3;
  const Ids mask(L * W, 1), l2g_mask(L, 1), l2g_ids(L, 0);
  Ids ids(L * W, 0);
  ids[static_cast<std::size_t>(700 * W + 1)] = 9;
  ids[static_cast<std::size_t>(100 * W + 2)] = 8;
  const MasksAndIds view{.batch = 1,
                         .length = L,
                         .globals = 1,
                         .radius = 1,
                         .l2l_mask = mask.data(),
                         .l2g_mask = l2g_mask.data(),
                         .l2l_ids = ids.data(),
                         .l2g_ids = l2g_ids.data()};
  for (int threads : {1, 2, 4}) {
    etc::set_thread_count(threads);
    REQUIRE_THROWS_WITH(labels_from_masks_and_ids(view, 6),
                        "labels: l2l: example 0, long 100, window column 2: expected a relative id in [0, R=6), got 8");
  }
  etc::set_thread_count(2);
}
