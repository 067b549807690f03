#include "tasks/analyze/earlier_analysis.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::analyze {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOfCommand = "etc analyze";

// What files.h and plots.h name.
constexpr std::array<std::string_view, 8> kFiles = {kSummaryFile,          "analysis.h5",       "statistics.csv",
                                                    "label_mass.csv",      "distance_mass.csv", "best_match.csv",
                                                    "relative_tables.csv", "gradient_norms.csv"};
constexpr std::array<std::string_view, 9> kPictures = {"violins_",       "entropy_", "mass_",
                                                       "label_mass_",    "carry_",   "distance_mass_",
                                                       "gradient_norms", "compare_", "relative_"};
constexpr std::string_view kTokensPicture = "first_tokens.svg", kModelFolder = "model_";

bool is_file_name(std::string_view name) {
  if (std::find(kFiles.begin(), kFiles.end(), name) != kFiles.end() || name == kTokensPicture) return true;
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return name.ends_with(".svg") && std::any_of(kPictures.begin(), kPictures.end(), begins);
}

// "model_2", the folder of a model in a comparison.
bool is_folder_name(std::string_view name) {
  if (!name.starts_with(kModelFolder) || name.size() == kModelFolder.size()) return false;
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return std::all_of(name.begin() + kModelFolder.size(), name.end(), is_digit);
}

// An entry that no analysis wrote, as a path in the folder; empty: none.
fs::path foreign_entry(const fs::path& folder, bool has_models) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path name = entry.path().filename();
    const fs::file_type type = entry.symlink_status().type();
    if (has_models && type == fs::file_type::directory && is_folder_name(name.string())) {
      const fs::path inside = foreign_entry(entry.path(), false);
      if (!inside.empty()) return name / inside;
    } else if (type != fs::file_type::regular || !is_file_name(name.string())) {
      return name;
    }
  }
  return {};
}

bool holds_analysis(const fs::path& folder) {
  try {
    return is_analysis(read_json_file(folder / kSummaryFile));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

bool is_analysis(const Json& summary) {
  return summary.is_object() && summary.value("format", Json()) == "etc analysis";
}

void require_replaceable(const fs::path& folder, bool overwrite) {
  std::error_code none;
  if (!fs::is_directory(folder, none) || fs::is_empty(folder, none)) return;
  const bool analysis = holds_analysis(folder);
  const fs::path foreign = analysis ? foreign_entry(folder, true) : fs::path();
  if (!analysis || !foreign.empty()) {
    fail_usage(kOfCommand, "--output {}: expected a new or empty folder, got one with files that are no analysis's{}{}",
               folder.string(), foreign.empty() ? "" : ": ", foreign.string());
  }
  if (!overwrite) {
    fail_usage(kOfCommand, "--output {}: holds an analysis already (--overwrite replaces it)", folder.string());
  }
}

}  // namespace etc::analyze
