#include "tasks/train/agreement.h"

#include "etc_core/base/crc32c.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc {

Json program_identity() {
  const std::string bytes = read_file("/proc/self/exe");
  return {{"program", {{"executable", fmt::format("{} bytes, checksum {:08x}", bytes.size(), crc32c(bytes))}}}};
}

Json agreement_of(const RunConfig& config, const Json& identity) {
  Json all = identity;
  all.update(program_identity());
  const Json training = training_fields().to_json(config.training);
  for (const char* key : {"save_every", "log_every", "shard_moments", "bucket_bytes"})
    all["training"][key] = training[key];
  return all;
}

void require_agreement(Communicator& processes, const Json& own) {
  if (processes.size() == 1) return;
  const std::vector<std::string> all = processes.gather(json_line(own));
  const Json first = parse_json(all[0], "agreement");
  for (int rank = 1; rank < processes.size(); ++rank) {
    const Json theirs = parse_json(all[static_cast<std::size_t>(rank)], "agreement");
    for (const auto& [section, entries] : first.items()) {
      for (const auto& [key, value] : entries.items()) {
        const Json other = theirs.value(section, Json::object()).value(key, Json());
        if (other == value) continue;
        fail("train",
             "{} differs from {}: {}.{}: {}, expected {} (every process needs the same program, data and "
             "configuration, on processors or devices of one kind)",
             processes.name_of(rank), processes.name_of(0), section, key, json_line(other), json_line(value));
      }
    }
  }
}

}  // namespace etc
