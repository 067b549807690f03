#include "tasks/train/kept_files.h"

#include "data/text/sentence_splitter.h"
#include "data/text/tokenizer_json.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "etc_core/checkpoint/kept_names.h"
#include "tasks/registry.h"

namespace etc {

namespace {

constexpr std::string_view kPunkt = "punkt:";

// preprocess_config: of the data. An empty setting means no files.
MoreFiles kept_tables(const std::string& setting, const Json& preprocess_config) {
  const Json of_data = preprocess_config.value("splitter", Json::object());
  const bool punkt = of_data.is_object() && of_data.value("name", "") == "punkt";
  if (setting.empty()) {
    if (punkt)
      log::warn(
          "the data were cut by Punkt: without --splitter punkt:FOLDER the model keeps no tables, and whoever predicts "
          "raw records with it has to give them");
    return {};
  }
  if (!punkt || !setting.starts_with(kPunkt)) {
    fail_usage("train", "--splitter: expected punkt:FOLDER, of data that were cut by Punkt; got {}, and data cut by {}",
               setting,
               of_data.empty()       ? "no splitter"
               : of_data.is_object() ? of_data.value("name", "")
                                     : "another");
  }
  const auto splitter = data::load_splitter(setting);
  const std::string expected = of_data.value("tables_sha256", "");
  if (splitter->tables_sha256() != expected) {
    fail(setting, "other Punkt tables than those of the data: expected SHA-256 {}, got {}", expected,
         splitter->tables_sha256());
  }
  MoreFiles files;
  const std::filesystem::path folder = setting.substr(kPunkt.size());
  for (const char* table : kPunktTables) files[table] = read_file(folder / table);
  return files;
}

}  // namespace

MoreFiles files_to_keep(const RunConfig& config, Task& task, DataIdentity& identity) {
  MoreFiles files = kept_tables(config.data.splitter, identity.preprocess_config);
  if (config.data.vocab.empty()) {
    if (task.needs_vocabulary()) {
      fail_usage("train", "task {} writes its answers with the vocabulary of the data: expected --vocab FILE",
                 task_name(config.task));
    }
    log::info("no --vocab: the model's folder holds no vocabulary, and predicting raw records with it takes one");
    return files;
  }
  const Vocabulary vocabulary(config.data.vocab, identity);
  task.use_vocabulary(vocabulary.tokenizer);
  const auto of_vocabulary = data::vocabulary_files(*vocabulary.tokenizer, vocabulary.path);
  identity.vocab_file = of_vocabulary.front().first;
  for (const auto& [name, path] : of_vocabulary) files[name] = read_file(path);
  const bool lower_case =
      !identity.preprocess_config.is_object() || identity.preprocess_config.value("do_lower_case", true);
  const std::string json = data::tokenizer_json(*data::load_tokenizer(vocabulary.path, {.do_lower_case = lower_case}));
  if (!json.empty()) files[kTokenizerJson] = json;
  return files;
}

std::string splitter_in(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / kPunktTables.back()) ? std::string(kPunkt) + folder.string() : "";
}

}  // namespace etc
