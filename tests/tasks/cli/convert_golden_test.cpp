// The complete workflow with the golden checkpoints: etc convert, etc info, etc encode on the golden inputs, and back
// to the bytes that TensorFlow wrote.
#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/golden/golden_case.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

using namespace etc;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

// The files of a checkpoint's folder, by the part of the name after the prefix.
std::map<std::string, std::string> bundle_files(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::size_t at = std::min(name.find(".index"), name.find(".data-"));
    if (at != std::string::npos) files[name.substr(at)] = read_file(entry.path());
  }
  return files;
}

}  // namespace

TEST_CASE("golden checkpoints go through the program: converted, described, run, and back byte by byte",
          "[cli][golden]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const auto golden_folder = test::golden_folder();
  test::GoldenReport report("etc convert, then etc encode: worst difference", {"outputs"});
  int found = 0;
  if (golden_folder && fs::exists(*golden_folder / "ckpt")) {
    for (const auto& entry : fs::directory_iterator(*golden_folder / "ckpt")) {
      const std::string name = entry.path().filename().string();
      const fs::path golden = *golden_folder / (name + ".h5");
      if (!fs::exists(entry.path() / "etc_config.json") || !fs::exists(golden)) continue;
      CAPTURE(name);
      const test::TemporaryFolder folder;
      const auto run = [&](const std::vector<std::string>& arguments) {
        const test::Result result = test::run_program(arguments, folder.path());
        INFO(result.err);
        REQUIRE(result.code == 0);
        return result.out;
      };
      const std::string model = folder / "model", output = folder / "out.h5", back = folder / "back";
      run({"convert", "--from", "tf", entry.path(), "--with-optimizer-slots", "--output", model});
      CHECK_THAT(run({"info", model}), Contains("parameters") && Contains("model.safetensors"));
      run({"convert", "--to", "tf-names", model, "--output", back});
      CHECK(bundle_files(back) == bundle_files(entry.path()));

      run({"encode", "--inputs", golden, "--model", model, "--output", output});
      const test::GoldenFile expected(golden), got(output);
      test::Worst worst;
      for (const char* states : {"long", "global"}) {
        worst.compare(states, test::best_reference(expected, "", "outputs", states).values,
                      got.read<float>(std::string("outputs/") + states).values.data());
      }
      INFO(worst.where);
      CHECK(worst.value <= 1e-5);
      report.row(name, {worst.value});
      ++found;
    }
  }
  if (found == 0) test::skip("no ETC checkpoints with golden outputs");
}
