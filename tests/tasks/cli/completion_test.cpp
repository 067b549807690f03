// Help by task, completion and the manual page, generated from the commands' declarations.
#include <cstdlib>
#include <sstream>

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

using namespace etc;
using Words = std::vector<std::string>;

namespace {

std::string printed(const Words& words) {
  const test::TemporaryFolder folder;
  const test::Result result = test::run_program(words, folder.path());
  INFO(result.err);
  REQUIRE(result.code == 0);
  return result.out;
}

// Help texts wrap at the line width.
std::string on_one_line(const std::string& text) {
  std::istringstream stream(text);
  std::string line;
  for (std::string word; stream >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

// Whether the shell command succeeds; its output goes to `out`.
bool shell(const test::TemporaryFolder& folder, const std::string& command) {
  return std::system(("cd '" + folder.path().string() + "' && (" + command + ") > out 2>&1").c_str()) == 0;
}

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0;
}

}  // namespace

TEST_CASE("help of a task shows that task's options alone, with types and defaults", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const std::string all = printed({"prepare", "--help"}), nq = printed({"prepare", "nq", "--help"});
  for (const char* other : {"--kp-max-length", "--masked-lm-prob", "--splitter", "--task"}) {
    CHECK_THAT(all, Catch::Contains(std::string("  ") + other + " "));
    CHECK_THAT(nq, !Catch::Contains(std::string("  ") + other + " "));
  }
  CHECK_THAT(nq, Catch::Contains("(task nq)") && Catch::Contains("--seq-len INT=4096") &&
                     Catch::Contains("--fixed-blocks true|false=false") &&
                     Catch::Contains("--input-form original|simplified|either=original"));
  CHECK_THAT(on_one_line(nq), Catch::Contains("long tokens of a window (L) (4 or more)"));
  CHECK_THAT(on_one_line(printed({"train", "nq", "--help"})),
             Catch::Contains("(0 to 1)") && Catch::Contains("(0 or more, below 1)"));
  CHECK_THAT(nq, Catch::Contains("--task nq --split") && !Catch::Contains("--task wikihop"));
  // A setting that several tasks share shows the task's own default.
  CHECK_THAT(nq, Catch::Contains("--global-seq-len INT=230"));
  CHECK_THAT(printed({"prepare", "wikihop", "--help"}), Catch::Contains("--global-seq-len INT=430"));
  for (const char* other : {"--source", "--learn-vocab", "learn-splitter", "--long-seq-len"})
    CHECK_THAT(nq, !Catch::Contains(other));
  CHECK_THAT(on_one_line(nq), Catch::Contains("--max-long-tokens INT another name of --seq-len "));
  CHECK_THAT(printed({"prepare", "translation", "--help"}), Catch::Contains("--source TEXT ..."));
  CHECK_THAT(printed({"train", "openkp", "--help"}), Catch::Contains("--max-loss") &&
                                                         Catch::Contains("--learning-rate") &&
                                                         !Catch::Contains("--answer-encoding"));
  CHECK_THAT(printed({"predict", "hotpotqa", "--help"}),
             Catch::Contains("--sf-threshold NUMBER=0.5") && !Catch::Contains("--span-selection"));
  CHECK_THAT(printed({"eval", "nq", "--help"}), Catch::Contains("--span-selection joint|disjoint|joint-exhaustive"));
  CHECK_THAT(printed({"sample", "openkp", "--help"}), !Catch::Contains("--hops"));
}

TEST_CASE("a task as the first word is the option, and a mistyped one is told", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const auto refused = [&](const Words& words) {
    const test::Result result = test::run_program(words, folder.path());
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK_THAT(refused({"prepare", "wikihp"}), Catch::Contains("unexpected argument wikihp (did you mean wikihop?)"));
  CHECK_THAT(refused({"prepare", "wikihp", "--help"}), Catch::Contains("unexpected argument wikihp"));
  CHECK_THAT(refused({"prepare", "nq", "--task", "wikihop"}), Catch::Contains("expected one value, got nq wikihop"));
  CHECK_THAT(refused({"prepare", "nq"}), Catch::Contains("--split is required"));
  CHECK_THAT(refused({"prepare", "nq", "--splitter", "icu", "--split", "dev", "--input", "a", "--vocab", "v",
                      "--output", "o.h5"}),
             Catch::Contains("--splitter is no option of task nq"));
  CHECK(test::run_program({"sample", "wikihop", "--records", "5", "--output", (folder / "s").string()}, folder.path())
            .code == 0);
}

// Writes the completion script of a shell into the folder: bash, zsh or fish.
void write_completion(const test::TemporaryFolder& folder, const std::string& name) {
  const std::string script = printed({"completion", name});
  test::write_file(folder / name, script);
  CHECK_THAT(script, Catch::Contains("learning-rate") && Catch::Contains("keyphrases"));
  if (!has_program(name)) return;
  const bool read = shell(folder, name + " -n " + name);
  INFO(read_file(folder / "out"));
  CHECK(read);
}

TEST_CASE("bash completes by its script", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  write_completion(folder, "bash");
  const auto completed = [&](const std::string& words) {
    test::write_file(folder / "try.sh",
                     "source ./bash\nCOMP_WORDS=(" + words +
                         ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_etc\necho \"${COMPREPLY[*]}\"\n");
    CHECK(shell(folder, "bash try.sh"));
    return read_file(folder / "out");
  };
  CHECK(completed("etc pre") == "prepare predict\n");
  CHECK(completed("etc prepare wik") == "wikihop\n");
  CHECK(completed("etc prepare wikihop --seq") == "--seq-len\n");
  CHECK(completed("etc eval --compute in") == "int8\n");
  CHECK(completed("etc predict --span-selection dis") == "disjoint\n");
  CHECK(completed("etc predict --model tr") == "try.sh\n");
}

TEST_CASE("fish completes by its script", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  write_completion(folder, "fish");
  if (!has_program("fish")) return test::skip("fish is not installed");
  test::write_file(folder / "try.fish", "source ./fish\ncomplete -C $argv[1]\n");
  const auto completed = [&](const std::string& line) {
    CHECK(shell(folder, "HOME=\"$PWD\" fish try.fish '" + line + "' | cut -f 1 | sort"));
    return read_file(folder / "out");
  };
  CHECK(completed("etc pre") == "predict\nprepare\n");
  CHECK(completed("etc prepare wik") == "wikihop\n");
  CHECK(completed("etc prepare wikihop --seq") == "--seq-len\n");
  CHECK(completed("etc eval --compute in") == "int8\n");
  CHECK(completed("etc predict --span-selection dis") == "disjoint\n");
  CHECK(completed("etc predict --model tr") == "try.fish\n");
}

// Completes the last word of lines in zsh, typed into a pseudo-terminal.
constexpr const char* kTypedIntoZsh = R"(zmodload zsh/zpty
zpty shell zsh -f -i
show='show() { print -r -- $BUFFER >> completed; BUFFER= }; zle -N show; bindkey "^T" show'
zpty -w shell "fpath=($PWD \$fpath); autoload -U compinit; compinit -u -D; $show; print >> completed"
lines() { cat completed 2> /dev/null | wc -l }
await() { repeat 500 { (( $(lines) > $1 )) && break; sleep 0.02 } }
await 0
typed=0
for line in $@; do
  zpty -w -n shell $line$'\t\C-t'
  await $(( ++typed ))
done
tail -n +2 completed
)";

TEST_CASE("zsh completes by its script", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  write_completion(folder, "zsh");
  if (!has_program("zsh")) return test::skip("zsh is not installed");
  std::filesystem::rename(folder / "zsh", folder / "_etc");
  test::write_file(folder / "try.zsh", kTypedIntoZsh);
  CHECK(shell(folder,
              "zsh -f try.zsh 'etc keyph' 'etc prepare wik' 'etc prepare wikihop --seq-l' 'etc eval --compute in' "
              "'etc predict --span-selection dis' 'etc predict --model try'"));
  CHECK(read_file(folder / "out") ==
        "etc keyphrases \netc prepare wikihop \netc prepare wikihop --seq-len \netc eval --compute int8 \n"
        "etc predict --span-selection disjoint \netc predict --model try.zsh \n");
}

TEST_CASE("the manual page has every command and option, and groff reads it", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const std::string page = printed({"manual"});
  for (const char* part :
       {"\\fB\\-\\-learning\\-rate\\fR", "ETC keyphrases", "one of auto, fp32, bf16, int8", "required"}) {
    CHECK_THAT(page, Catch::Contains(part));
  }
  if (!has_program("groff")) return;
  const test::TemporaryFolder folder;
  test::write_file(folder / "etc.1", page);
  CHECK(shell(folder, "groff -man -Tutf8 -Kutf8 -ww etc.1 > page; test -s page"));
  CHECK(read_file(folder / "out") == "");
}
