// The fixed order in which the micro-batches of an optimiser batch are added: a binary tree over their numbers 0 … n-1.
//
//               ┌───────┴───────┐              n = 6; level 0: the micro-batches, the leaves.
//           ┌───┴───┐           │              Node i of level k stands over the leaves i·2^k … (i+1)·2^k-1.
//         ┌─┴─┐   ┌─┴─┐       ┌─┴─┐            Complete nodes are added left + right, siblings only; what stays
//         0   1   2   3       4   5            alone at the end joins from the right: big + (… + small).
//
// A process that holds neighbouring leaves adds up the complete nodes over them (push); the remaining nodes are its
// roots. Roots of other processes, pushed in the order of their leaves, continue the same sum (push, finish). So the
// sum has the same bits whether one process holds all leaves or each of many holds some.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace etc {

struct TreeNode {
  int level = 0;
  std::int64_t index = 0;
};

// Value: what is added. Add: a function (Value left, Value right) → Value.
template <typename Value, typename Add>
class TreeSum {
 public:
  struct Root {
    TreeNode node;
    Value value;
  };

  explicit TreeSum(Add add) : add_(std::move(add)) {}

  // Adds the value of the node that follows all nodes pushed before.
  void push(TreeNode node, Value value) {
    while (!roots_.empty() && siblings(roots_.back().node, node)) {
      value = add_(std::move(roots_.back().value), std::move(value));
      roots_.pop_back();
      node = {node.level + 1, node.index / 2};
    }
    roots_.push_back({node, std::move(value)});
  }

  const std::vector<Root>& roots() const { return roots_; }

  // Returns the sum of all values, if any were pushed, and empties the tree.
  std::optional<Value> finish() {
    std::optional<Value> total;
    while (!roots_.empty()) {
      Value left = std::move(roots_.back().value);
      roots_.pop_back();
      total = total ? add_(std::move(left), std::move(*total)) : std::move(left);
    }
    return total;
  }

 private:
  static bool siblings(const TreeNode& left, const TreeNode& right) {
    return left.level == right.level && left.index % 2 == 0 && right.index == left.index + 1;
  }

  Add add_;
  std::vector<Root> roots_;
};

}  // namespace etc
