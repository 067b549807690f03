#include "tests/structure/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>

#include "etc_core/base/device.h"

namespace etc::test {

namespace {

// Calls visit(line number, line) for every line.
template <typename Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(++number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// An include line's target.
struct Include {
  int line;
  bool quoted;  // "ours" rather than <theirs>
  std::string target;
};

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> includes;
  for_each_line(text, [&](int number, std::string_view line) {
    const auto skip_blanks = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
    skip_blanks();
    if (line.substr(0, 1) != "#") return;
    line.remove_prefix(1);
    skip_blanks();
    if (line.substr(0, 7) != "include") return;
    line.remove_prefix(7);
    skip_blanks();
    if (line.empty() || (line[0] != '"' && line[0] != '<')) return;
    const bool quoted = line[0] == '"';
    line.remove_prefix(1);
    includes.push_back({number, quoted, std::string(line.substr(0, line.find(quoted ? '"' : '>')))});
  });
  return includes;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// ---- Includes between the project's folders. ----

// A folder with a rule, and the folders that it may include besides itself.
struct Module {
  std::string_view folder;
  std::vector<std::string_view> may_include;
};

const std::vector<Module>& modules() {
  static const std::vector<Module> all = [] {
    std::vector<Module> list{
        {"etc_core/base", {}},
        {"etc_core/comm", {"etc_core/base"}},
        {"sparse", {"etc_core/base"}},
        {"data", {"etc_core/base"}},
        // cli before tasks: the first match counts.
        {"tasks/cli", {"etc_core", "sparse", "data", "tasks", "bench"}},
        {"tasks", {"etc_core", "sparse", "data"}},
        {"bench", {"etc_core", "sparse", "data", "tasks/plot", "tests"}},
        {"tests", {"etc_core", "sparse", "data", "tasks", "bench"}},
    };
    // Each part of the core may include those to its left.
    std::vector<std::string_view> left{"etc_core/base", "etc_core/comm", "sparse"};
    for (std::string_view part : {"etc_core/tensor", "etc_core/ops", "etc_core/autograd", "etc_core/nn",
                                  "etc_core/optim", "etc_core/checkpoint"}) {
      list.push_back({part, left});
      left.push_back(part);
    }
    return list;
  }();
  return all;
}

bool inside(std::string_view path, std::string_view folder) {
  return starts_with(path, folder) && path.size() > folder.size() && path[folder.size()] == '/';
}

const Module* module_of(std::string_view path) {
  const auto found = std::find_if(modules().begin(), modules().end(),
                                  [&](const Module& module) { return inside(path, module.folder); });
  return found == modules().end() ? nullptr : &*found;
}

// ---- Includes inside tasks/. ----

// The task folder that contains a path, for example "tasks/nq": any folder of tasks/ that is not shared by the tasks. Empty
// for other paths.
std::string_view folder_of_task(std::string_view path) {
  constexpr std::string_view kTasks = "tasks/";
  if (!starts_with(path, kTasks)) return {};
  const std::size_t end = path.find('/', kTasks.size());
  if (end == std::string_view::npos) return {};
  const std::string_view folder = path.substr(0, end);
  for (std::string_view shared :
       {"tasks/analyze", "tasks/cli", "tasks/feed", "tasks/inference", "tasks/library", "tasks/plot", "tasks/prepare",
        "tasks/serve", "tasks/span", "tasks/text", "tasks/train"}) {
    if (folder == shared) return {};
  }
  return folder;
}

// The fault of an include between two files of tasks/, if any: a task must not include another task, only the registry
// includes all tasks, and only folders that run any task include the registry.
std::optional<std::string> wrong_floor(std::string_view path, std::string_view target) {
  if (!starts_with(path, "tasks/") || starts_with(path, "tasks/registry.")) return std::nullopt;
  const std::string_view task = folder_of_task(target);
  if (!task.empty() && task != folder_of_task(path)) return fmt::format("only {} and tasks/registry.cpp may", task);
  if (target == "tasks/registry.h" && !inside(path, "tasks/train") && !inside(path, "tasks/inference") &&
      !inside(path, "tasks/library") && !inside(path, "tasks/cli")) {
    return "only tasks/train, tasks/inference, tasks/library and tasks/cli may";
  }
  return std::nullopt;
}

// ---- Third-party headers ("doors": the files that may include a library). ----

struct Door {
  std::string_view library;
  std::regex header;                      // its header names
  std::vector<std::string_view> folders;  // path prefixes that may include it
};

const std::vector<Door>& doors() {
  static const std::vector<Door> all{
      {"HDF5", std::regex("hdf5.*|H5.*|highfive/.*"), {"data/h5/", "tests/support/"}},
      {"oneDNN", std::regex("oneapi/dnnl/.*|dnnl.*"), {"etc_core/ops/cpu/matmul_onednn.", "bench/library_product."}},
      {"Highway",
       std::regex("hwy/.*"),
       {"sparse/cpu/", "etc_core/ops/cpu/", "etc_core/base/bf16-inl.h", "etc_core/base/philox-inl.h",
        "etc_core/base/nearest_int-inl.h", "etc_core/base/power_of_two-inl.h", "etc_core/base/transpose-inl.h",
        "tests/base/vectors_test.cpp"}},
      {"simdjson", std::regex("simdjson.*"), {"data/readers/", "bench/json_pass."}},
      {"zlib",
       std::regex("zlib\\.h"),
       {"data/readers/", "data/h5/padded_deflate.", "etc_core/checkpoint/convert/pickle/zip_", "tests/support/"}},
      {"libdeflate", std::regex("libdeflate\\.h"), {"data/h5/"}},
      {"Snappy", std::regex("snappy.*"), {"etc_core/checkpoint/convert/tf_bundle/table_reader."}},
      {"ICU", std::regex("unicode/.*"), {"data/text/"}},
      {"SentencePiece", std::regex("sentencepiece.*"), {"data/text/"}},
      {"OpenSSL", std::regex("openssl/.*"), {"data/text/sha256."}},
      {"CLI11", std::regex("CLI/.*"), {"tasks/cli/command.cpp", "bench/arguments.cpp"}},
      {"cpp-httplib", std::regex("httplib.*"), {"tasks/serve/http_server.cpp"}},
      {"nlohmann/json", std::regex("nlohmann/.*"), {"etc_core/base/json.", "etc_core/base/json_fwd.h"}},
      {"spdlog", std::regex("spdlog/.*"), {"etc_core/base/log."}},
      {"nanobind", std::regex("nanobind/.*|Python\\.h"), {"tasks/python/"}},
      {"Catch2", std::regex("catch2/.*"), {"tests/support/"}},
  };
  return all;
}

const Door* door_of(const std::string& header) {
  const auto found = std::find_if(doors().begin(), doors().end(),
                                  [&](const Door& door) { return std::regex_match(header, door.header); });
  return found == doors().end() ? nullptr : &*found;
}

// A message that names the files that may include `header`, if `path` is not one of them.
std::optional<std::string> closed_door(const std::string& path, const std::string& header) {
  // CUDA's libraries and the communicators are used in many folders, so their rule is the folder's name.
  static const std::regex cuda("cuda.*|cub/.*|thrust/.*|cublas.*|curand.*|cooperative_groups.*|mma\\.h");
  static const std::regex processes("mpi\\.h|nccl.*");
  if (std::regex_match(header, cuda) && path.find("/cuda/") == std::string::npos) {
    return "CUDA belongs into a folder cuda/";
  }
  if (std::regex_match(header, processes) && !starts_with(path, "etc_core/comm/")) {
    return "MPI and NCCL belong into etc_core/comm/";
  }
  const Door* door = door_of(header);
  if (door == nullptr) return std::nullopt;
  const bool open = std::any_of(door->folders.begin(), door->folders.end(),
                                [&](std::string_view folder) { return starts_with(path, folder); });
  if (open) return std::nullopt;
  return fmt::format("{} belongs into {}", door->library, fmt::join(door->folders, " or "));
}

}  // namespace

Findings check_includes(const std::string& path, std::string_view text,
                        const std::function<bool(const std::string&)>& exists) {
  Findings findings;
  const Module* from = module_of(path);
  if (from == nullptr) return {fmt::format("{}: expected in one of the folders of the architecture", path)};
  for (const Include& include : includes_of(text)) {
    const std::string where = fmt::format("{}:{}: ", path, include.line);
    if (const auto door = closed_door(path, include.target)) {
      findings.push_back(fmt::format("{}{} may not be included here: {}", where, include.target, *door));
    }
    // Highway's own headers are customarily quoted, since some are included several times through a macro.
    if (!include.quoted || door_of(include.target) != nullptr) continue;
    const Module* to = module_of(include.target);
    if (to == nullptr || !exists(include.target)) {
      findings.push_back(fmt::format("{}\"{}\": expected a file of the project, from its root", where, include.target));
      continue;
    }
    const bool allowed =
        to == from || std::any_of(from->may_include.begin(), from->may_include.end(),
                                  [&](std::string_view folder) { return inside(include.target, folder); });
    if (const auto floor = wrong_floor(path, include.target)) {
      findings.push_back(fmt::format("{}{} may not be included here: {}", where, include.target, *floor));
    }
    if (!allowed) {
      findings.push_back(fmt::format(
          "{}{} may not include {} (allowed: {})", where, from->folder, include.target,
          from->may_include.empty() ? "nothing of ours" : fmt::format("{}", fmt::join(from->may_include, ", "))));
    }
  }
  return findings;
}

std::ptrdiff_t most_lines(const std::string& path) {
  static const std::regex readme("(.*/)?README\\.md"), product("(etc_core|sparse|data|tasks)/.*\\.(h|cpp|cu)");
  return std::regex_match(path, readme) ? 120 : std::regex_match(path, product) ? 450 : 700;
}

Findings check_length(const std::string& path, std::string_view text) {
  const auto lines = std::count(text.begin(), text.end(), '\n');
  if (lines <= most_lines(path)) return {};
  return {fmt::format("{}: {} lines, expected at most {}", path, lines, most_lines(path))};
}

Findings check_comments(const std::string& folder, const std::vector<std::string_view>& texts) {
  constexpr int kLeastPercent = 15;
  int comments = 0, lines = 0;
  for (std::string_view text : texts) {
    for_each_line(text, [&](int, std::string_view line) {
      if (line.find_first_not_of(" \t") == std::string_view::npos) return;
      ++lines;
      if (line.find("//") != std::string_view::npos) ++comments;
    });
  }
  if (100 * comments >= kLeastPercent * lines) return {};
  return {
      fmt::format("{}: {} of {} lines hold a comment, expected at least {} %", folder, comments, lines, kLeastPercent)};
}

Findings check_machine_paths(const std::string& path, std::string_view text) {
  // Concatenated from pieces, so that the rule does not match this file.
  static const std::regex pattern(std::string("/wo") + "rk/|/ro" + "ot/|/ho" + "me/[a-z]|/t" + "mp/[A-Za-z0-9_.]");
  Findings findings;
  for_each_line(text, [&](int number, std::string_view line) {
    if (std::regex_search(line.begin(), line.end(), pattern)) {
      findings.push_back(fmt::format("{}:{}: a path of one machine: {}", path, number, line));
    }
  });
  return findings;
}

Findings check_backend_conditionals(const std::string& path, std::string_view text) {
  static const std::regex pattern(
      R"(^\s*#\s*(if|ifdef|ifndef|elif|elifdef|elifndef)\b.*\b(ETC_CUDA|USE_CUDA|WITH_CUDA)\b)");
  Findings findings;
  for_each_line(text, [&](int number, std::string_view line) {
    if (std::regex_search(line.begin(), line.end(), pattern)) {
      findings.push_back(fmt::format("{}:{}: a conditional on a backend: {}", path, number, line));
    }
  });
  return findings;
}

namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// Whether the line has the word, ignoring case; an underscore does not count as a letter.
bool has_word(std::string_view line, std::string_view word) {
  const auto letter = [&](std::size_t at) {
    return at < line.size() && std::isalnum(static_cast<unsigned char>(line[at])) != 0;
  };
  const auto same = [](char a, char b) { return lower(a) == b; };
  for (auto at = line.begin();; ++at) {
    at = std::search(at, line.end(), word.begin(), word.end(), same);
    if (at == line.end()) return false;
    const auto begin = static_cast<std::size_t>(at - line.begin());
    if ((begin == 0 || !letter(begin - 1)) && !letter(begin + word.size())) return true;
  }
}

}  // namespace

Findings check_backend_names(const std::string& path, std::string_view text) {
  const bool source = path.ends_with(".h") || path.ends_with(".cpp") || path.ends_with("CMakeLists.txt");
  if (!source || path == "CMakeLists.txt" || inside(path, "tests") || inside(path, "bench")) return {};
  Findings findings;
  for (int i = kFirstBackend; i < kDeviceCount; ++i) {
    const std::string name = device_name(static_cast<Device>(i));
    if (path.find("/" + name + "/") != std::string::npos) continue;
    for_each_line(text, [&](int number, std::string_view line) {
      if (!has_word(line, name)) return;
      findings.push_back(fmt::format("{}:{}: a backend's name: {}", path, number, line));
    });
  }
  return findings;
}

namespace {

bool is_test_file(const std::string& path) {
  return path.ends_with("_test.cpp");
}

}  // namespace

Findings check_assertions(const std::string& path, std::string_view text) {
  if (!is_test_file(path)) return {};
  if (text.find("TEST_CASE(") == std::string_view::npos) return {fmt::format("{}: no TEST_CASE in a test file", path)};
  for (std::string_view word : {"REQUIRE", "CHECK"}) {
    if (text.find(word) != std::string_view::npos) return {};
  }
  return {fmt::format("{}: asserts nothing (expected REQUIRE or CHECK)", path)};
}

Findings check_built(const std::string& path, std::string_view lists) {
  if (!is_test_file(path)) return {};
  const std::string name = path.substr(path.rfind('/') + 1);
  for (std::size_t at = lists.find(name); at != std::string_view::npos; at = lists.find(name, at + 1)) {
    const bool begins = at == 0 || std::string_view(" /(\n\"").find(lists[at - 1]) != std::string_view::npos;
    if (begins) return {};
  }
  return {fmt::format("{}: no test program has it (expected its name in the folder's CMakeLists.txt)", path)};
}

}  // namespace etc::test
