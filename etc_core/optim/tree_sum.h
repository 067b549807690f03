// The one order in which the micro-batches of an optimiser batch are added: a binary tree over their numbers 0 … n-1.
//
//               ┌───────┴───────┐              n = 6; level 0: the micro-batches, the leaves.
//           ┌───┴───┐           │              Node i of level k stands over the leaves i·2^k … (i+1)·2^k-1.
//         ┌─┴─┐   ┌─┴─┐       ┌─┴─┐            Complete nodes are added left + right, siblings only; what stays
//         0   1   2   3       4   5            alone at the end joins from the right: big + (… + small).
//
// Whoever holds neighbouring leaves adds what complete nodes lie over them (push); what is left are roots. Roots of
// others, pushed in the order of their leaves, go on exactly where these stopped (push, finish). So the sum has the same
// bits whether one process holds all leaves or each of many holds some.
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

  // Takes the value of a node behind all those pushed before.
  void push(TreeNode node, Value value) {
    while (!roots_.empty() && siblings(roots_.back().node, node)) {
      value = add_(std::move(roots_.back().value), std::move(value));
      roots_.pop_back();
      node = {node.level + 1, node.index / 2};
    }
    roots_.push_back({node, std::move(value)});
  }

  const std::vector<Root>& roots() const { return roots_; }

  // What push() could not add, in the order of the leaves; none afterwards.
  std::vector<Root> take_roots() { return std::exchange(roots_, {}); }

  // The sum of all, if anything was pushed; nothing afterwards.
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
