#include "tasks/train/step_time.h"

#include <algorithm>

#include "data/loader/order.h"
#include "etc_core/optim/tree_sum.h"

namespace etc {

namespace {

// Number of roots over neighbouring leaves: sums of complete subtrees (tree_sum.h).
std::int64_t roots_over(const data::Share& leaves) {
  const auto nothing = [](char, char) { return '\0'; };
  TreeSum<char, decltype(nothing)> tree(nothing);
  for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) tree.push({0, leaf}, '\0');
  return std::ssize(tree.roots());
}

}  // namespace

StepTime step_time(const StepWork& work, const LinkRates& link, int processes) {
  StepTime time;
  std::int64_t roots = 0, own_roots = 0;
  for (int rank = 0; rank < processes; ++rank) {
    const data::Share share = data::share_of(work.micro_batches, rank, processes);
    const std::int64_t own = roots_over(share);
    roots += own;
    if (share.end - share.begin <= time.micro_batches) continue;
    time.micro_batches = share.end - share.begin;
    own_roots = own;
  }
  time.computing = static_cast<double>(time.micro_batches) * (work.forward + work.backward) +
                   (work.shard_moments ? work.update / processes : work.update);
  double to_owners = 0, back = 0, first_to_owners = 0, first_back = 0;
  for (std::size_t i = 0; processes > 1 && i < work.bucket_bytes.size(); ++i) {
    const double part = static_cast<double>(work.bucket_bytes[i]) / processes;
    const double waits = (processes - 1) * link.latency;
    const double c = static_cast<double>(roots - own_roots) * part / link.bytes_per_second + waits;
    const double d = (processes - 1) * part / link.bytes_per_second + waits;
    time.bytes += static_cast<double>(roots - own_roots + processes - 1) * part;
    to_owners += c;
    back += d;
    if (i > 0) continue;
    first_to_owners = c;
    first_back = d;
  }
  time.sending = to_owners + back;
  time.waiting = work.shard_moments ? std::max(first_to_owners, to_owners - work.backward) + back
                                    : std::max(first_to_owners + first_back, to_owners + back - work.backward);
  return time;
}

}  // namespace etc
