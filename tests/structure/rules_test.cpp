// Tests of the rules on invented text.
#include "tests/structure/rules.h"

#include "tests/support/catch.h"

using namespace etc::test;

namespace {

Findings includes(const std::string& path, const std::string& text) {
  return check_includes(path, text, [](const std::string&) { return true; });
}

}  // namespace

TEST_CASE("an include against the arrows is found with its line", "[structure]") {
  REQUIRE(includes("sparse/a.cpp", "\n#include \"data/dataset.h\"\n") ==
          Findings{"sparse/a.cpp:2: sparse may not include data/dataset.h (allowed: etc_core/base)"});
  REQUIRE(includes("etc_core/base/a.h", "#include \"sparse/a.h\"") ==
          Findings{"etc_core/base/a.h:1: etc_core/base may not include sparse/a.h (allowed: nothing of ours)"});
  for (const auto& [path, target] :
       std::vector<std::pair<std::string, std::string>>{{"data/a.cpp", "sparse/a.h"},
                                                        {"etc_core/ops/a.h", "etc_core/autograd/tape.h"},
                                                        {"etc_core/nn/a.h", "etc_core/optim/optimizer.h"},
                                                        {"etc_core/tensor/a.h", "data/dataset.h"},
                                                        {"tasks/train/a.cpp", "bench/harness.h"},
                                                        {"tasks/wikihop/a.cpp", "tests/support/folders.h"},
                                                        {"bench/a.cpp", "tasks/train/trainer.h"},
                                                        {"etc_core/checkpoint/a.cpp", "tasks/train/trainer.h"}}) {
    CAPTURE(path, target);
    REQUIRE(includes(path, "  #  include \"" + target + "\"").size() == 1);
  }
}

TEST_CASE("includes along the arrows are fine", "[structure]") {
  for (const auto& [path, target] :
       std::vector<std::pair<std::string, std::string>>{{"sparse/labels/a.cpp", "sparse/labels/a.h"},
                                                        {"sparse/a.cpp", "etc_core/base/error.h"},
                                                        {"etc_core/optim/a.cpp", "etc_core/nn/parameters.h"},
                                                        {"etc_core/nn/a.h", "sparse/labels/labels.h"},
                                                        {"tasks/cli/a.cpp", "bench/harness.h"},
                                                        {"bench/a.cpp", "tasks/plot/svg.h"},
                                                        {"tasks/cli/a.cpp", "tasks/plot/svg.h"},
                                                        {"tasks/wikihop/a.cpp", "data/dataset.h"},
                                                        {"tests/sparse/a.cpp", "tasks/train/trainer.h"}}) {
    CAPTURE(path, target);
    REQUIRE(includes(path, "#include \"" + target + "\"").empty());
  }
  REQUIRE(includes("sparse/a.cpp", "#include <vector>\n// #include \"data/dataset.h\"\n").empty());
}

TEST_CASE("a task's own files are included by itself and the registry only", "[structure]") {
  const std::string own = "#include \"tasks/nq/prepare.h\"", registry = "#include \"tasks/registry.h\"";
  REQUIRE(includes("tasks/prepare/a.cpp", own) == Findings{"tasks/prepare/a.cpp:1: tasks/nq/prepare.h may not be "
                                                           "included here: only tasks/nq and tasks/registry.cpp may"});
  for (const std::string path : {"tasks/task.h", "tasks/cli/a.cpp", "tasks/train/a.h", "tasks/wikihop/a.cpp"}) {
    CAPTURE(path);
    REQUIRE(includes(path, own).size() == 1);
  }
  for (const std::string path : {"tasks/nq/a.cpp", "tasks/registry.cpp", "tests/tasks/nq/a.cpp"}) {
    CAPTURE(path);
    REQUIRE(includes(path, own).empty());
  }
  for (const std::string path : {"tasks/nq/a.cpp", "tasks/prepare/a.h", "tasks/task.h"}) {
    CAPTURE(path);
    REQUIRE(includes(path, registry).size() == 1);
  }
  for (const std::string path : {"tasks/cli/a.cpp", "tasks/train/a.cpp", "tasks/registry.cpp", "tests/tasks/a.cpp"}) {
    CAPTURE(path);
    REQUIRE(includes(path, registry).empty());
  }
}

TEST_CASE("a third-party header outside its door is found", "[structure]") {
  REQUIRE(
      includes("tasks/train/a.cpp", "#include <hdf5.h>") ==
      Findings{"tasks/train/a.cpp:1: hdf5.h may not be included here: HDF5 belongs into data/h5/ or tests/support/"});
  for (const std::string header :
       {"oneapi/dnnl/dnnl.hpp", "simdjson.h", "zlib.h", "libdeflate.h", "unicode/uchar.h", "sentencepiece_processor.h",
        "openssl/sha.h", "CLI/CLI.hpp", "httplib.h", "hwy/highway.h", "nlohmann/json.hpp", "spdlog/spdlog.h",
        "catch2/catch.hpp", "mpi.h", "nccl.h", "cuda_runtime.h", "thrust/scan.h"}) {
    CAPTURE(header);
    REQUIRE(includes("tasks/train/a.cpp", "#include <" + header + ">").size() == 1);
  }
  REQUIRE(includes("data/h5/a.cpp", "#include <hdf5.h>").empty());
  // The allowed files of a library may be listed by name.
  REQUIRE(includes("etc_core/ops/cpu/matmul_onednn.cpp", "#include <oneapi/dnnl/dnnl.hpp>").empty());
  REQUIRE(includes("bench/library_product.cpp", "#include <oneapi/dnnl/dnnl.hpp>").empty());
  REQUIRE(includes("etc_core/ops/cpu/linear_cpu.cpp", "#include <oneapi/dnnl/dnnl.hpp>").size() == 1);
  REQUIRE(includes("sparse/cpu/a.cpp", "#include \"hwy/highway.h\"\n#include <hwy/highway.h>").empty());
  REQUIRE(includes("sparse/a.cpp", "#include \"hwy/highway.h\"").size() == 1);
  REQUIRE(includes("sparse/cuda/a.cu", "#include <cuda_runtime.h>\n#include <thrust/scan.h>").empty());
  REQUIRE(includes("etc_core/base/json.h", "#include <nlohmann/json.hpp>").empty());
  REQUIRE(includes("etc_core/base/json_fwd.h", "#include <nlohmann/json_fwd.hpp>").empty());
  REQUIRE(includes("tasks/cli/command.cpp", "#include <CLI/CLI.hpp>").empty());
  REQUIRE(includes("tasks/cli/command.h", "#include <CLI/CLI.hpp>").size() == 1);
}

TEST_CASE("an include that is not from the root or does not exist is found", "[structure]") {
  REQUIRE(includes("sparse/labels/a.cpp", "#include \"masks.h\"") ==
          Findings{"sparse/labels/a.cpp:1: \"masks.h\": expected a file of the project, from its root"});
  const Findings missing = check_includes("sparse/a.cpp", "#include \"sparse/gone.h\"\n",
                                          [](const std::string& path) { return path != "sparse/gone.h"; });
  REQUIRE(missing.size() == 1);
}

TEST_CASE("a source file outside the architecture's folders is found", "[structure]") {
  REQUIRE(includes("utils/a.cpp", "") == Findings{"utils/a.cpp: expected in one of the folders of the architecture"});
  REQUIRE(includes("etc_core/a.cpp", "").size() == 1);
}

TEST_CASE("a path of one machine is found, a relative one is not", "[structure]") {
  const std::string slash = "/";
  REQUIRE(check_machine_paths("run", "cd " + slash + "work/main") ==
          Findings{"run:1: a path of one machine: cd " + slash + "work/main"});
  REQUIRE(check_machine_paths("a.cpp", "\n\"" + slash + "tmp/probe\"").size() == 1);
  REQUIRE(check_machine_paths("a.md", slash + "root/.cache and " + slash + "home/me").size() == 1);
  REQUIRE(check_machine_paths("a.md", "build/cpu/etc, ../shared/golden, /etc/hosts, network/root, homework/a").empty());
}

TEST_CASE("a conditional on a backend is found", "[structure]") {
  const std::string option = "ETC_CUDA";
  REQUIRE(check_backend_conditionals("a.cpp", "#ifdef " + option).size() == 1);
  REQUIRE(check_backend_conditionals("a.cpp", "  # if defined(" + option + ") && 1").size() == 1);
  REQUIRE(check_backend_conditionals("a.cpp", "// " + option + "\n#if defined(__x86_64__)").empty());
}

TEST_CASE("a backend's name outside of its folders is found", "[structure]") {
  REQUIRE(check_backend_names("tasks/a.cpp", "\nif (device == Device::cuda) return;") ==
          Findings{"tasks/a.cpp:2: a backend's name: if (device == Device::cuda) return;"});
  REQUIRE(check_backend_names("etc_core/nn/a.h", "#include \"etc_core/nn/cuda/a.h\"").size() == 1);
  for (const char* path : {"etc_core/ops/cuda/a.cpp", "CMakeLists.txt", "tests/a.cpp", "bench/a.cpp", "README.md"}) {
    REQUIRE(check_backend_names(path, "cuda").empty());
  }
}

TEST_CASE("a file that is too long for its kind is found", "[structure]") {
  REQUIRE(check_length("tests/a.cpp", std::string(701, '\n')) ==
          Findings{"tests/a.cpp: 701 lines, expected at most 700"});
  REQUIRE(check_length("tests/a.cpp", std::string(700, '\n')).empty());
  REQUIRE(check_length("tasks/nq/a.cpp", std::string(451, '\n')) ==
          Findings{"tasks/nq/a.cpp: 451 lines, expected at most 450"});
  for (const char* path : {"sparse/cuda/a.cu", "data/a.h", "etc_core/ops/cpu/a-inl.h"}) {
    CAPTURE(path);
    REQUIRE(most_lines(path) == 450);
  }
  for (const char* path : {"README.md", "etc_core/README.md"}) {
    CAPTURE(path);
    REQUIRE(most_lines(path) == 120);
  }
  for (const char* path : {"bench/RESULTS.md", "data/CMakeLists.txt", "tasks/configs/a.json", "NOT_README.md"}) {
    CAPTURE(path);
    REQUIRE(most_lines(path) == 700);
  }
}

TEST_CASE("a folder with too few comments is found", "[structure]") {
  const std::string line = "x;\n";
  std::string few, enough = "// why\n";
  for (int i = 0; i < 6; ++i) few += line;
  for (int i = 0; i < 5; ++i) enough += "\n  y;  // [T, H]\n\n" + line + line + line + line;
  REQUIRE(check_comments("sparse/cpu", {few, "a;  // b\n"}) ==
          Findings{"sparse/cpu: 1 of 7 lines hold a comment, expected at least 15 %"});
  REQUIRE(check_comments("sparse/cpu", {few, enough}).empty());
  REQUIRE(check_comments("sparse/cpu", {}).empty());
}

TEST_CASE("a test file that no program has is found", "[structure]") {
  const std::string lists = "etc_test(test_a SOURCES pretrain_test.cpp\n ../b/other_test.cpp LIBRARIES etc)";
  CHECK(check_built("tests/a/train_test.cpp", lists).size() == 1);
  CHECK(check_built("tests/a/pretrain_test.cpp", lists).empty());
  CHECK(check_built("tests/b/other_test.cpp", lists).empty());
  CHECK(check_built("tests/b/support.cpp", "").empty());
}

TEST_CASE("a test file without an assertion is found", "[structure]") {
  REQUIRE(check_assertions("tests/a_test.cpp", "TEST_CASE(\"a\") {}") ==
          Findings{"tests/a_test.cpp: asserts nothing (expected REQUIRE or CHECK)"});
  REQUIRE(check_assertions("tests/a_test.cpp", "int main() {}").size() == 1);
  REQUIRE(check_assertions("tests/a_test.cpp", "TEST_CASE(\"a\") { REQUIRE(true); }").empty());
  REQUIRE(check_assertions("tests/support/a.cpp", "").empty());
}
