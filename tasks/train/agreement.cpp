#include "tasks/train/agreement.h"

#include <link.h>

#include "etc_core/base/crc32c.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc {

namespace {

struct Sought {
  std::uintptr_t address;
  std::string file;
};

int look(dl_phdr_info* object, std::size_t, void* data) {
  Sought& sought = *static_cast<Sought*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const std::uintptr_t first = object->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || sought.address < first || sought.address - first >= part.p_memsz) continue;
    if (object->dlpi_name != nullptr) sought.file = object->dlpi_name;
    return 1;
  }
  return 0;
}

}  // namespace

std::string file_of_code(const void* code) {
  Sought sought{reinterpret_cast<std::uintptr_t>(code), ""};
  dl_iterate_phdr(look, &sought);
  return sought.file.empty() ? "/proc/self/exe" : sought.file;  // the program itself has no name there
}

Json program_identity() {
  const std::string bytes = read_file(file_of_code(reinterpret_cast<const void*>(&program_identity)));
  return {{"program", {{"executable", fmt::format("{} bytes, checksum {:08x}", bytes.size(), crc32c(bytes))}}}};
}

Json agreement_of(const RunConfig& config, const Json& identity) {
  Json all = identity;
  all.update(program_identity());
  const Json training = training_fields().to_json(config.training);
  for (const char* key : {"early_stopping", "save_every", "log_every", "shard_moments", "bucket_bytes"})
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
