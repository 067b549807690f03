#include "tasks/prepare/report.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"

namespace etc::prepare {

void Counts::add(const Counts& other) {
  records += other.records;
  examples += other.examples;
  rejected += other.rejected;
  dropped += other.dropped;
  warned += other.warned;
  fatal = fatal || other.fatal;
  for (const auto& [code, count] : other.codes) codes[code] += count;
  if (first_rejected.empty()) first_rejected = other.first_rejected;
  if (first_dropped.empty()) first_dropped = other.first_dropped;
}

std::string Counts::summary() const {
  std::string text = fmt::format("source records: {}\nexamples: {}\nrejected: {}\ndropped: {}\nwarned: {}\n", records,
                                 examples, rejected, dropped, warned);
  for (const auto& [code, count] : codes) text += fmt::format("{}: {}\n", code, count);
  return text;
}

void warn_of_left_out(const Counts& counts, const std::filesystem::path& report) {
  struct Kind {
    const char* word;
    std::int64_t count;
    const std::string& first;
  };
  for (const auto& [word, count, first] : {Kind{"rejected", counts.rejected, counts.first_rejected},
                                           Kind{"dropped", counts.dropped, counts.first_dropped}}) {
    if (count == 0 || first.empty()) continue;
    log::warn("prepare: {} of {} records {}; the first: {} (all of them: {})", count, counts.records, word, first,
              report.string());
  }
}

Json json_of(const Counts& counts) {
  return {{"records", counts.records},
          {"examples", counts.examples},
          {"rejected", counts.rejected},
          {"dropped", counts.dropped},
          {"warned", counts.warned},
          {"fatal", counts.fatal},
          {"codes", counts.codes},
          {"first_rejected", counts.first_rejected},
          {"first_dropped", counts.first_dropped}};
}

Counts counts_of(const Json& json) {
  try {
    Counts counts;
    json.at("records").get_to(counts.records);
    json.at("examples").get_to(counts.examples);
    json.at("rejected").get_to(counts.rejected);
    json.at("dropped").get_to(counts.dropped);
    json.at("warned").get_to(counts.warned);
    json.at("fatal").get_to(counts.fatal);
    json.at("codes").get_to(counts.codes);
    json.at("first_rejected").get_to(counts.first_rejected);
    json.at("first_dropped").get_to(counts.first_dropped);
    return counts;
  } catch (const Json::exception& error) {
    fail("prepare", "not the counts of a preparation: {}", error.what());
  }
}

data::Fault fault_of(const Json& line) {
  data::Fault fault;
  try {
    line.at("record").get_to(fault.record_index);
    line.at("id").get_to(fault.id);
    line.at("field").get_to(fault.field);
    line.at("code").get_to(fault.code);
    line.at("message").get_to(fault.message);
    line.at("file").get_to(fault.file);
    line.at("byte_offset").get_to(fault.byte_offset);
    const auto word = line.at("severity").get<std::string>();
    using data::Severity;
    for (const Severity severity : {Severity::fatal, Severity::reject, Severity::drop, Severity::warn}) {
      if (word != data::severity_text(severity)) continue;
      fault.severity = severity;
      return fault;
    }
    fail("prepare", "not a line of a report: severity {}", word);
  } catch (const Json::exception& error) {
    fail("prepare", "not a line of a report: {}", error.what());
  }
}

void Report::add(const data::Fault& fault) {
  // An ordered object, so that the members have the order of the specification.
  OrderedJson line;
  line["record"] = fault.record_index;
  line["id"] = fault.id;
  line["field"] = fault.field;
  line["code"] = fault.code;
  line["severity"] = data::severity_text(fault.severity);
  line["message"] = fault.message;
  line["file"] = fault.file;
  line["byte_offset"] = fault.byte_offset;
  file_.write(json_line(line) + "\n");
}

}  // namespace etc::prepare
