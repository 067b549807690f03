// Damaged raw files through a task's preparation give a fault with a place and a message, or examples that a data set
// accepts.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset_info.h"
#include "etc_core/base/json.h"
#include "etc_core/base/random.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/prepare/first_pass.h"
#include "tasks/prepare/json_preparation.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/support/mutate.h"

namespace etc::test {

// Records as the text of a raw file.
inline std::string raw_text(const Json& records, data::RecordLayout layout) {
  if (layout == data::RecordLayout::array) return records.dump(2);
  std::string lines;
  for (const Json& record : records) lines += json_line(record) + "\n";
  return lines;
}

// One value anywhere in a record or an array of records replaced by one of `values`.
inline Json with_odd_value(Json records, std::uint64_t seed, const std::vector<Json>& values) {
  const Philox4 dice = philox({0, 0, 0, 0}, mix_key(seed, 0x6f6464));
  const Json flat = records.flatten();
  auto place = flat.begin();
  std::advance(place, dice[0] % flat.size());
  Json::json_pointer pointer(place.key());
  for (std::uint32_t up = dice[1] % 3; up > 0 && pointer.parent_pointer() != Json::json_pointer(); --up) {
    pointer = pointer.parent_pointer();
  }
  records[pointer] = values[dice[2] % values.size()];
  return records;
}

// Values that are odd in any record.
inline std::vector<Json> odd_values() {
  return {nullptr,
          true,
          -1,
          1e300,
          std::numeric_limits<std::uint64_t>::max(),
          "",
          " \t\u00a0",
          std::string("\0", 1),
          "\u200b",
          "\ufffd",
          std::string(3000, 'x'),
          std::string(500, '.'),
          Json::array(),
          Json::object(),
          {"a", "a"},
          {"a", 0},
          {{"id", {{"id", 5}}}},
          std::vector<std::string>(300, "a b"),
          std::vector<std::string>(300, "")};
}

// A task's checks in addition to those of every mutant; null: none.
struct RawChecks {
  std::function<void(const data::Example&)> example;  // for accepted examples
  std::function<void(const prepare::Converted&)> record = nullptr;
  std::function<void(const data::InputFault&, const std::string& file)> fault = nullptr;  // that ended a file
  std::function<void(const data::DatasetReader&)> data = nullptr;                         // for all accepted data
};

// Feeds mutants to several preparations of one task and writes the results to a data set.
class RawMutants {
 public:
  RawMutants(std::vector<std::unique_ptr<prepare::JsonPreparation>> preparations, RawChecks checks)
      : preparations_(std::move(preparations)),
        checks_(std::move(checks)),
        writer_(folder_ / "out.h5", preparations_[0]->schema(), info(preparations_[0]->schema().task)) {}

  // text: a valid file. odd(seed): a file with one odd value.
  void run(const std::string& text, const std::function<std::string(std::uint64_t seed)>& odd, std::uint64_t count) {
    const std::string packed = gzip(text);
    for (std::uint64_t seed = 0; seed < count; ++seed) {
      CAPTURE(seed);
      if (seed % 8 == 0) {
        pass(mutate(packed, seed), seed / 8);
      } else {
        pass(seed % 2 == 0 ? odd(seed) : mutate(text, seed), seed / 2);
      }
    }
    finish();
  }

  // records: an array of valid records.
  void run(const Json& records, std::uint64_t count) {
    const data::RecordLayout layout = preparations_[0]->layout();
    const auto odd = [&](std::uint64_t seed) {
      const Json mutant = with_odd_value(records, seed, odd_values());
      return mutant.is_array() ? raw_text(mutant, layout) : json_line(mutant);
    };
    run(raw_text(records, layout), odd, count);
  }

 private:
  void pass(const std::string& bytes, std::uint64_t seed) {
    const auto path = folder_ / "mutant.json";
    write_file(path, bytes);
    std::int64_t next = 0;
    prepare::PassCallbacks callbacks;
    callbacks.progress = [](std::int64_t) {};
    callbacks.record = [&](prepare::PassRecord&& record) {
      CHECK(record.index == next++);
      for (const data::Fault& row : record.converted.faults.rows()) {
        CHECK((!row.code.empty() && !row.message.empty()));
      }
      if (checks_.record) checks_.record(record.converted);
      if (record.converted.faults.rejected() || record.converted.faults.dropped()) {
        reject(record);
        return;
      }
      ++taken_;
      if (record.converted.gold) writer_.append_gold(*record.converted.gold);
      for (const data::Example& example : record.converted.examples) {
        checks_.example(example);
        writer_.append(example);
        ++examples_;
      }
    };
    const prepare::JsonPreparation& preparation = *preparations_[seed % preparations_.size()];
    const prepare::PassEnd end = pass_over_file(preparation, path, callbacks);
    if (preparation.unique_field() != nullptr) first_pass(preparation, path);
    records_ += next;
    if (!end.fault) return;
    ++faults_;
    CHECK(end.fault_record == next);
    CHECK(end.fault->where().byte_offset >= 0);
    CHECK(std::string(end.fault->what()).starts_with("byte "));
    if (checks_.fault) checks_.fault(*end.fault, bytes);
  }

  // A rejected or dropped record becomes a row of the data set, too.
  void reject(const prepare::PassRecord& record) {
    for (data::Fault fault : record.converted.faults.rows()) {
      if (fault.severity == data::Severity::warn) continue;
      fault.id = record.converted.id;
      fault.details = record.converted.reject_details;
      writer_.add_fault(fault);
      ++rejected_;
      return;
    }
  }

  // Checks that the first pass keeps the same records as parsing and ranking every record.
  static void first_pass(const prepare::JsonPreparation& preparation, const std::filesystem::path& path) {
    const prepare::Choice chosen = prepare::choose_records(preparation, {path}, [](int, std::int64_t) {});
    prepare::Choice all;
    std::vector<std::pair<std::string, prepare::Choice::Place>> candidates;
    prepare::RecordWork<std::optional<prepare::Candidate>> work;
    work.work = [&](data::RecordSlice& slice) -> std::optional<prepare::Candidate> {
      prepare::FaultList ignored;
      try {
        const data::JsonRecord record = data::parse_record(slice);
        if (!unreadable(preparation, record, ignored)) return preparation.candidate(record);
      } catch (const data::InputFault&) {
      }
      return std::nullopt;
    };
    work.deliver = [&](std::int64_t index, const data::TextPosition&, std::optional<prepare::Candidate>&& candidate) {
      if (!candidate) return;
      CHECK(candidate->rank >= 0);
      candidates.push_back({candidate->id, {0, index}});
      all.add(candidate->id, {0, index}, candidate->rank);
    };
    work.progress = [](std::int64_t) {};
    walk_records(preparation, path, work);
    for (const auto& [id, place] : candidates) {
      const auto* kept = chosen.kept(id);
      CHECK((kept == nullptr || *kept == place) == (*all.kept(id) == place));
    }
  }

  // Checks that all accepted data can be read back.
  void finish() {
    writer_.finish({}, taken_ + rejected_, rejected_, 0);
    const data::DatasetReader reader({folder_ / "out.h5"}, preparations_[0]->schema());
    CHECK(reader.size() == examples_);
    CHECK(std::ssize(reader.faults()) == rejected_);
    CHECK(examples_ > 0);
    CHECK(faults_ > 0);
    CHECK(records_ > taken_);
    const bool has_gold = !preparations_[0]->schema().gold.empty();
    CHECK(reader.gold_size() == (has_gold ? taken_ : 0));
    if (checks_.data) checks_.data(reader);
  }

  static data::DatasetInfo info(const std::string& task) {
    data::DatasetInfo result;
    result.task = task;
    result.split = "train";
    result.vocab_sha256 = std::string(64, '0');
    result.preprocess_config = Json::object();
    result.unicode_version = "0";
    return result;
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<prepare::JsonPreparation>> preparations_;
  RawChecks checks_;
  data::DatasetWriter writer_;
  std::int64_t records_ = 0, taken_ = 0, examples_ = 0, rejected_ = 0, faults_ = 0;
};

}  // namespace etc::test
