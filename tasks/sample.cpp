#include "tasks/sample.h"

#include "etc_core/base/error.h"

namespace etc {

SampleKey records_key() {
  return {"records", 2000, "training records; a fifth of it for dev"};
}

SampleKey seed_key() {
  return {"seed", 1, "equal seeds give equal files"};
}

std::uint64_t seed_of(const SampleValues& values) {
  if (values.at("seed") < 0) fail_usage("etc sample", "--seed: expected at least 0, got {}", values.at("seed"));
  return static_cast<std::uint64_t>(values.at("seed"));
}

}  // namespace etc
