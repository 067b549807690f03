// The rules, applied to the checkout.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "etc_core/base/files.h"
#include "tests/structure/rules.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/python.h"

using namespace etc;
using test::Findings;

namespace {

namespace fs = std::filesystem;

struct File {
  std::string path;  // relative to the checkout
  std::string text;
  bool source;  // C++ or CUDA
};

bool one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Every hand-written text file, selected by folder and extension. Git is not used, since the checkout may be an archive.
const std::vector<File>& files() {
  static const std::vector<File> all = [] {
    std::vector<File> list;
    const fs::path root = test::source_folder();
    const auto add = [&](const fs::path& path) {
      const std::string ending = path.extension().string(), name = path.filename().string();
      const bool source = one_of(ending, {".h", ".cpp", ".cu", ".cuh"});
      if (!source && !one_of(ending, {".md", ".cmake", ".json"}) && !one_of(name, {"CMakeLists.txt", "run"})) return;
      list.push_back({fs::relative(path, root).generic_string(), read_file(path), source});
    };
    for (const auto& entry : fs::directory_iterator(root)) {
      if (entry.is_regular_file()) add(entry.path());
    }
    for (const char* folder : {"etc_core", "sparse", "data", "tasks", "bench", "tests", "cmake"}) {
      for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
        if (entry.is_regular_file()) add(entry.path());
      }
    }
    std::sort(list.begin(), list.end(), [](const File& a, const File& b) { return a.path < b.path; });
    return list;
  }();
  return all;
}

void require_none(const Findings& findings) {
  for (const std::string& finding : findings) UNSCOPED_INFO(finding);
  REQUIRE(findings.empty());
}

// All findings of `check(path, text)` over the checkout.
template <typename Check>
void require_everywhere(bool sources_only, const Check& check) {
  Findings findings;
  for (const File& file : files()) {
    if (sources_only && !file.source) continue;
    const Findings some = check(file.path, file.text);
    findings.insert(findings.end(), some.begin(), some.end());
  }
  REQUIRE(files().size() > 50);  // the checkout was found
  require_none(findings);
}

}  // namespace

TEST_CASE("includes follow the arrows and third-party headers stay behind their doors", "[structure]") {
  const fs::path root = test::source_folder();
  require_everywhere(true, [&](const std::string& path, const std::string& text) {
    return test::check_includes(path, text, [&](const std::string& target) { return fs::exists(root / target); });
  });
}

TEST_CASE("no file is longer than its kind may be", "[structure]") {
  require_everywhere(false, test::check_length);
}

TEST_CASE("kernels say why", "[structure]") {
  for (const std::string folder : {"sparse", "sparse/cpu", "sparse/cuda", "etc_core/ops/cpu", "etc_core/ops/cuda"}) {
    std::vector<std::string_view> texts;
    for (const File& file : files()) {
      if (file.source && fs::path(file.path).parent_path() == folder) texts.push_back(file.text);
    }
    CAPTURE(folder);
    REQUIRE(texts.size() > 10);
    require_none(test::check_comments(folder, texts));
  }
}

TEST_CASE("functions take few arguments, few of them are long, and little is repeated", "[structure]") {
  const auto python = test::python_with("re");
  if (!python) return test::skip("no Python");
  const std::string script = "'" + (test::source_folder() / "tests" / "structure" / "counts.py").string() + "'";
  CHECK(test::run_python(*python, script + " --list --check >/dev/null") == 0);

  // The check detects a violation.
  const test::TemporaryFolder tree;
  fs::create_directories(tree / "sparse");
  std::ofstream(tree / "sparse/a.h") << "void six(int a, int b, int c, int d, int e, std::map<int, int> f);\n";
  const std::string check = script + " --check '" + tree.path().string() + "'";
  CHECK(test::run_python(*python, check) == 0);
  std::ofstream(tree / "sparse/b.h") << "void seven(int a, int b, int c, int d, int e, int f, int g);\n";
  CHECK(test::run_python(*python, check + " >/dev/null") != 0);
}

TEST_CASE("no file names a path of one machine", "[structure]") {
  require_everywhere(false, test::check_machine_paths);
}

TEST_CASE("no source has a conditional on a backend", "[structure]") {
  require_everywhere(true, test::check_backend_conditionals);
}

TEST_CASE("no file outside a backend's folders names it", "[structure]") {
  require_everywhere(false, test::check_backend_names);
}

TEST_CASE("every test file asserts something", "[structure]") {
  require_everywhere(true, test::check_assertions);
}

TEST_CASE("every test file is a source of a test program", "[structure]") {
  const auto list_of = [](const fs::path& folder) {
    const fs::path list = test::source_folder() / folder / "CMakeLists.txt";
    return fs::exists(list) ? read_file(list) : std::string();
  };
  require_everywhere(true, [&](const std::string& path, std::string_view) {
    const fs::path folder = fs::path(path).parent_path();
    std::string lists = list_of(folder) + "\n" + list_of(folder.parent_path());
    for (const auto& entry : fs::directory_iterator(test::source_folder() / folder)) {
      if (entry.is_directory()) lists += "\n" + list_of(entry.path());
    }
    return test::check_built(path, lists);
  });
}

namespace {

// Files found to be formatted, kept beside this program by a hash of their path, text and rules, because formatting all of
// them takes ten seconds.
class FormattedFiles {
 public:
  FormattedFiles() : rules_(read_file(test::source_folder() / ".clang-format")) {
    std::ifstream kept(path_);
    for (std::size_t hash = 0; kept >> hash;) known_.insert(hash);
  }
  bool has(const File& file) const { return known_.count(hash_of(file)) == 1; }
  void replace(const std::vector<File>& all) const {
    std::ofstream kept(path_);
    for (const File& file : all) kept << hash_of(file) << "\n";
  }

 private:
  std::size_t hash_of(const File& file) const {
    return std::hash<std::string>{}(file.path + "\n" + rules_ + file.text);
  }

  fs::path path_ = fs::read_symlink("/proc/self/exe").parent_path() / "formatted.txt";
  std::string rules_;
  std::set<std::size_t> known_;
};

}  // namespace

TEST_CASE("sources are formatted as .clang-format says", "[structure]") {
  // Other versions format differently.
  if (std::system("clang-format --version 2>&1 | grep -q 'version 14'") != 0) {
    return test::skip("clang-format 14 is not installed");
  }
  const FormattedFiles formatted;
  std::string command = "cd '" + test::source_folder().string() + "' && clang-format --dry-run -Werror";
  const std::size_t no_files = command.size();
  for (const File& file : files()) {
    if (file.source && !formatted.has(file)) command += " '" + file.path + "'";
  }
  if (command.size() == no_files) return;  // it would read standard input
  // Only the first finding of each file is reported.
  std::FILE* pipe = ::popen((command + " 2>&1 | grep error: | sort -t: -k1,1 -u").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Findings findings;
  for (char line[512]; std::fgets(line, sizeof line, pipe) != nullptr;) findings.emplace_back(line);
  ::pclose(pipe);
  require_none(findings);
  formatted.replace(files());
}

TEST_CASE("tables of results say what the raw numbers say", "[structure]") {
  const auto python = test::python_with("csv, json");
  if (!python) return test::skip("no Python");
  REQUIRE(test::run_python(*python, "'" + (test::source_folder() / "bench" / "tables.py").string() + "' --check") == 0);
}
