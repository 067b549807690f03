// The complete workflow with the golden checkpoints: etc convert, etc info, etc encode on the golden inputs, and back
// to the bytes that TensorFlow wrote.
#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
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

// All tensors of a checkpoint but `left_out` of them have the same numbers in the other.
void check_tensors(const fs::path& back, const fs::path& original, std::size_t left_out) {
  const auto ours = convert::open_tensors(back), theirs = convert::open_tensors(original);
  CHECK(ours->tensors().size() + left_out == theirs->tensors().size());
  for (const auto& [name, tensor] : ours->tensors()) {
    CAPTURE(name);
    REQUIRE(theirs->at(name).text() == tensor.text());
    std::string got(tensor.bytes(), '\0'), expected = got;
    ours->read_raw(name, got.data());
    theirs->read_raw(name, expected.data());
    CHECK(got == expected);
  }
}

}  // namespace

TEST_CASE("golden checkpoints go through the program: converted, described, run, and back byte by byte",
          "[cli][golden]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  test::GoldenReport report("etc convert, then etc encode: worst difference", {"outputs"});
  const auto checkpoints = test::golden_checkpoints("etc_config.json");
  if (checkpoints.empty()) return test::skip("no ETC checkpoints with golden outputs");
  for (const fs::path& checkpoint : checkpoints) {
    CAPTURE(checkpoint.string());
    const test::GoldenFile expected(test::golden_file_of(checkpoint));
    const test::TemporaryFolder folder;
    const auto run = [&](const std::vector<std::string>& arguments) {
      const test::Result result = test::run_program(arguments, folder.path());
      INFO(result.err);
      REQUIRE(result.code == 0);
      return result.out;
    };
    const std::string model = folder / "model", output = folder / "out.h5", back = folder / "back";
    run({"convert", "--from", "tf", checkpoint, "--with-optimizer-slots", "--output", model});
    CHECK_THAT(run({"info", model}), Contains("parameters") && Contains("model.safetensors"));
    run({"convert", "--to", "tf-names", model, "--output", back});
    // A head of an unknown task is not part of the model.
    const Json left = read_json_file(model + "/conversion.json").at("left_out");
    if (left.empty()) {
      CHECK(bundle_files(back) == bundle_files(checkpoint));
    } else {
      check_tensors(back, checkpoint, left.size());
    }

    run({"encode", "--inputs", expected.path(), "--model", model, "--output", output});
    const test::GoldenFile got(output);
    test::Worst worst;
    for (const std::string states : {"long", "global"}) {
      test::compare_output(worst, expected, states, got.read<float>("outputs/" + states).values);
    }
    INFO(worst.where);
    CHECK(worst.value <= 1e-5);
    report.row(checkpoint.filename().string(), {worst.value});
  }
}
