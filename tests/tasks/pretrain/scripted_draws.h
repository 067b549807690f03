// Random choices recorded in a golden file: draws must be requested in the recorded order, and all of them must be
// used.
#pragma once

#include <cmath>
#include <stdexcept>
#include <vector>

#include "tasks/pretrain/draws.h"
#include "tests/support/golden_h5.h"

namespace etc::test {

class ScriptedDraws : public pretrain::Draws {
 public:
  // group: of dense_reference.h5, with draw_kind and draw_value.
  ScriptedDraws(const GoldenFile& file, const std::string& group)
      : kinds_(only_row(file.read_ragged<std::int64_t>(group + "/draw_kind"))),
        values_(only_row(file.read_ragged<double>(group + "/draw_value"))) {
    if (kinds_.size() != values_.size()) throw std::logic_error("draws without a kind or a value");
  }

  double uniform() override { return take(kUniform); }

  std::int64_t between(std::int64_t low, std::int64_t high) override {
    const std::int64_t value = whole(kRandint);
    if (value < low || value > high) throw std::logic_error("a draw outside of its range");
    return value;
  }

  void begin_order(std::int64_t count) override {
    if (whole(kOrder) != count) throw std::logic_error("an order of another length");
    order_.clear();
    for (std::int64_t i = 0; i < count; ++i) order_.push_back(whole(kOrderEntry));
    next_in_order_ = 0;
  }
  std::int64_t next_in_order() override { return order_.at(next_in_order_++); }

  bool used_up() const { return next_ == kinds_.size(); }

 private:
  enum Kind : std::int64_t { kUniform, kRandint, kOrder, kOrderEntry };

  template <typename Row>
  static Row only_row(const std::vector<Row>& rows) {
    if (rows.size() != 1) throw std::logic_error("draws of another number of runs than one");
    return rows[0];
  }

  double take(Kind kind) {
    if (next_ >= kinds_.size()) throw std::logic_error("more draws than were written down");
    if (kinds_[next_] != kind) throw std::logic_error("a draw of another kind");
    return values_[next_++];
  }
  std::int64_t whole(Kind kind) {
    const double value = take(kind);
    if (value != std::floor(value)) throw std::logic_error("a draw of a whole number that is none");
    return static_cast<std::int64_t>(value);
  }

  std::vector<std::int64_t> kinds_;
  std::vector<double> values_;
  std::size_t next_ = 0, next_in_order_ = 0;
  std::vector<std::int64_t> order_;
};

}  // namespace etc::test
