#include "tasks/glue/prediction_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/pickle/zip_writer.h"
#include "tasks/glue/metrics.h"
#include "tasks/glue/row.h"

namespace etc::glue {

namespace {

using Answers = std::map<std::int64_t, std::string>;

// text: contents of a prediction file; where: its name.
Answers parse_predictions(const std::string& text, const std::string& where) {
  Answers predictions;
  std::istringstream lines(text);
  std::string line;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (number == 1) {
      if (line == "index\tprediction") continue;
      fail(where, "expected the header index<tab>prediction, got {}", prepare::quoted(line));
    }
    const std::size_t tab = std::min(line.find('\t'), line.size());
    std::int64_t index = -1;
    const auto [end, error] = std::from_chars(line.data(), line.data() + tab, index);
    if (tab == line.size() || error != std::errc() || end != line.data() + tab) {
      fail(fmt::format("{}: line {}", where, number), "expected an index and a prediction, got {}",
           prepare::quoted(line));
    }
    if (!predictions.emplace(index, line.substr(tab + 1)).second) {
      fail(fmt::format("{}: line {}", where, number), "row {} has two predictions", index);
    }
  }
  return predictions;
}

// The gold rows by their numbers.
std::map<std::int64_t, Row> read_gold(const std::vector<std::filesystem::path>& paths, DataSet set) {
  std::map<std::int64_t, Row> rows;
  RowNumbers numbers;
  for (const auto& path : paths) {
    const bool commas = path.extension() == ".csv";
    const RowForm form{set, commas ? data::TableForm::commas : data::TableForm::tabs, true};
    data::ByteStream stream(path);
    try {
      const auto reader = open_rows(stream, form);
      for (data::RecordSlice record; reader->next(record);) {
        prepare::FaultList faults;
        Row row = read_row(record, form, faults);
        if (faults.rejected()) fail(path.string(), "{}", faults.rows().front().message);
        if (!faults.dropped()) rows.emplace(numbers.next(record.index), std::move(row));
      }
    } catch (const data::InputFault& fault) {
      fail(path.string(), "{}", fault.what());
    }
  }
  if (rows.empty()) fail(paths.front().string(), "expected at least one row to compare with, got none");
  return rows;
}

void add_outcome(Outcomes& outcomes, const Row& row, const std::string& prediction, const DataSetInfo& info,
                 const std::string& where) {
  if (info.regression()) {
    double score = 0;
    const auto [end, error] = std::from_chars(prediction.data(), prediction.data() + prediction.size(), score);
    if (error != std::errc() || end != prediction.data() + prediction.size() || !std::isfinite(score)) {
      fail(where, "expected a number, got {}", prepare::quoted(prediction));
    }
    outcomes.gold_scores.push_back(row.score.value());
    outcomes.scores.push_back(score);
    return;
  }
  const auto found = std::find(info.labels.begin(), info.labels.end(), prediction);
  if (found == info.labels.end()) {
    fail(where, "expected one of {}, got {}", fmt::join(info.labels, ", "), prepare::quoted(prediction));
  }
  outcomes.labels.push_back(row.label);
  outcomes.predictions.push_back(found - info.labels.begin());
}

// One data set's predictions matched with its rows.
Outcomes outcomes_of(Answers predicted, const std::map<std::int64_t, Row>& rows, const DataSetInfo& info,
                     const std::string& where) {
  Outcomes outcomes;
  for (const auto& [number, row] : rows) {
    const auto found = predicted.find(number);
    if (found == predicted.end())
      fail(where, "row {} has no prediction; the gold files have {} rows", number, rows.size());
    add_outcome(outcomes, row, found->second, info, fmt::format("{}: row {}", where, number));
    predicted.erase(found);
  }
  if (predicted.empty()) return outcomes;
  fail(where, "row {} has a prediction, but the gold files have {} rows", predicted.begin()->first, rows.size());
}

// The submission's file for this gold file, whose folder is named as in the benchmark.
std::string row_name(const std::filesystem::path& gold) {
  const std::string folder = gold.parent_path().filename().string();
  for (const DataSetInfo& info : data_sets()) {
    if (folder == info.folder) {
      return submission_name(info, gold.stem().string().find("mismatched") != std::string::npos);
    }
  }
  fail(gold.string(), "expected a gold file in a folder named as the benchmark's, such as CoLA/dev.tsv");
}

Json score_submission(const std::filesystem::path& zip, const std::vector<std::filesystem::path>& gold) {
  const convert::ZipContents files = convert::read_zip(zip);
  std::map<std::string, std::vector<std::filesystem::path>> by_row;
  for (const auto& path : gold) by_row[row_name(path)].push_back(path);
  Json metrics = Json::object();
  std::map<std::string, std::vector<double>> rows;
  std::int64_t count = 0;
  for (const auto& [name, paths] : by_row) {
    const std::string member = name + ".tsv", where = zip.string() + ": " + member;
    const auto found = files.find(member);
    if (found == files.end()) fail(zip.string(), "has no file {} to compare with {}", member, paths.front().string());
    const DataSetInfo& info = data_set_of_file(member);
    const std::map<std::int64_t, Row> gold_rows = read_gold(paths, info.set);
    count += std::ssize(gold_rows);
    for (const auto& [metric, value] :
         measured(outcomes_of(parse_predictions(found->second, where), gold_rows, info, where), info)) {
      metrics[name + "." + metric] = value;
      if (info.set != DataSet::wnli && info.set != DataSet::ax) rows[name].push_back(100 * value);
    }
  }
  if (rows.size() == kOverallRows) metrics["overall"] = nine_row_overall(rows);
  return {{"metrics", metrics}, {"rows", count}};
}

}  // namespace

std::int64_t RowNumbers::next(std::int64_t record) {
  if (record <= last_record_) rows_before_ += last_record_ + 1;
  last_record_ = record;
  return rows_before_ + record;
}

const DataSetInfo& data_set_of_file(const std::filesystem::path& path) {
  std::string name = path.stem().string();
  if (name == "MNLI-m" || name == "MNLI-mm") name = "MNLI";
  std::vector<std::string> known;
  for (const DataSetInfo& info : data_sets()) {
    if (name == info.folder) return info;
    known.emplace_back(info.folder);
  }
  fail(path.string(), "expected a file named as in a submission, {}, MNLI-m or MNLI-mm, with .tsv",
       fmt::join(known, ", "));
}

Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold) {
  if (predictions.extension() == ".zip") return score_submission(predictions, gold);
  const DataSetInfo& info = data_set_of_file(predictions);
  const std::map<std::int64_t, Row> rows = read_gold(gold, info.set);
  const std::string where = predictions.string();
  const Outcomes outcomes = outcomes_of(parse_predictions(read_file(predictions), where), rows, info, where);
  Json metrics = Json::object();
  for (const auto& [name, value] : measured(outcomes, info)) metrics[name] = value;
  return {{"metrics", metrics}, {"rows", rows.size()}};
}

}  // namespace etc::glue
