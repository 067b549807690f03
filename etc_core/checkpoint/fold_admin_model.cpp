#include "etc_core/checkpoint/fold_admin_model.h"

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/seq2seq/admin_fold.h"
#include "etc_core/nn/seq2seq/encoder_decoder.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

Seq2SeqConfig admin_config(const fs::path& model) {
  const ModelConfig config = read_encoder_config(model);
  const auto* const own = dynamic_cast<const Seq2SeqConfig*>(&*config);
  if (own == nullptr) {
    fail_usage(model.string(), "expected an encoder-decoder of norm admin, got a model of kind {}",
               model_kind_of(config->to_json()));
  }
  if (own->norm != Seq2SeqConfig::Norm::admin) {
    fail_usage(model.string(), "expected an encoder-decoder of norm admin, got norm {}",
               own->to_json().at("norm").get<std::string>());
  }
  return *own;
}

struct Parameters {
  explicit Parameters(const Seq2SeqConfig& config) : encoder(config, all), decoder(config, all) {}

  ParameterSet all;
  Seq2SeqEncoder encoder;
  Seq2SeqDecoder decoder;
};

}  // namespace

std::string fold_admin_model(const fs::path& model, const fs::path& output,
                             const std::function<void(std::int64_t)>& written) {
  Seq2SeqConfig config = admin_config(model);
  Parameters trained(config);
  load_parameters(model / "model.safetensors", trained.all);
  config.norm = Seq2SeqConfig::Norm::admin_folded;
  Parameters folded(config);
  fold_admin(trained.all, folded.all);
  Json document = read_model_config(model);
  document["model"] = config.to_json();
  AtomicFolder update(output, OldFiles::drop);
  write_model(update.path(), document, folded.all, {}, written);
  copy_text_files(model, update.path());
  update.commit();
  return fmt::format("{}: {} scales folded, {} tensors", output.string(),
                     trained.all.all().size() - folded.all.all().size(), folded.all.all().size());
}

}  // namespace etc
