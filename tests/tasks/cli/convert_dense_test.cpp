// etc convert --as dense and --to bert as their users meet them.
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

using namespace etc;
using Catch::Contains;

namespace {

struct Scene {
  test::TemporaryFolder folder, logs;

  std::string path(const std::string& name) const { return (folder / name).string(); }
  test::Result run(const std::vector<std::string>& arguments, int code = 0) const {
    const test::Result result = test::run_program(arguments, logs.path());
    INFO(result.out << result.err);
    REQUIRE(result.code == code);
    return result;
  }
};

}  // namespace

TEST_CASE("a BERT becomes a dense encoder that the program knows, and a BERT again", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  std::filesystem::create_directories(scene.path("bert"));
  const test::HubBert hub(test::small_bert(), "");
  hub.write(scene.path("bert/model.safetensors"));
  write_file_atomically(scene.path("bert/config.json"), json_text(test::small_bert_json()));

  const std::string model = scene.path("model"), back = scene.path("back");
  const test::Result read =
      scene.run({"convert", "--from", "bert", scene.path("bert"), "--as", "dense", "--output", model});
  CHECK_THAT(read.out,
             Contains("copied: " + std::to_string(hub.tensors.size()) + " tensors") && Contains("output: " + model));
  CHECK(read_json_file(scene.path("model/config.json")).at("model").at("kind") == "dense");
  CHECK_THAT(scene.run({"info", model}).out, Contains("dense") && Contains("parameters"));
  CHECK_THAT(scene.run({"convert", "--to", "bert", model, "--output", back}).out,
             Contains(std::to_string(hub.tensors.size()) + " tensors; config.json"));
  const TensorFileReader written(scene.path("back/model.safetensors"));
  REQUIRE(written.entries().size() == hub.tensors.size());
  for (const auto& [name, values] : hub.tensors) {
    CAPTURE(name);
    const Tensor got = written.read_tensor(name, Purpose::scratch);
    REQUIRE(got.shape() == values.shape());
    CHECK(std::equal(got.data(), got.data() + got.size(), values.data()));
  }
  CHECK(read_json_file(scene.path("back/config.json")).at("model_type") == "bert");

  const auto refuses = [&](std::vector<std::string> arguments, const std::string& message, int code = 2) {
    arguments.insert(arguments.begin(), "convert");
    arguments.insert(arguments.end(), {"--output", scene.path("none")});
    CHECK_THAT(scene.run(arguments, code).err, Contains(message));
    CHECK(!std::filesystem::exists(scene.path("none")));
  };
  const std::string bert = scene.path("bert");
  refuses({"--from", "bert", bert, "--as", "dense", "--exact"}, "--exact is no option of --from bert --as dense");
  refuses({"--from", "roberta", bert, "--as", "dense"}, "--as dense: expected --from bert, got roberta");
  refuses({"--from", "tf", bert, "--as", "dense"}, "--as dense: expected --from bert, got tf");
  refuses({"--to", "safetensors", model}, "expected an ETC encoder", 1);
  refuses({"--to", "bert", bert}, "section \"model\"");
}
