// etc info on the results of `etc analyze`.
#include <string>
#include <vector>

#include "data/h5/array_file.h"
#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/grouped.h"
#include "etc_core/base/json.h"
#include "tasks/cli/info_results.h"
#include "tasks/cli/info_text.h"

namespace etc::cli {

namespace {

// The members of summary.json that are shown (analyze/files.cpp writes them).
struct AnalysedModel {
  std::string model, task, residual_scores;
  std::int64_t layers = 0, heads = 0, examples = 0, examples_asked = 0, tokens = 0;
  std::vector<std::string> data, query_groups, notes;
  Json operators = Json::array(), relative_tables = Json::array(), gradient_norms = Json::object();
};
struct AnalysedOperator {
  std::string name;
  std::int64_t queries = 0, unseen = 0;
  Json statistics = Json::object();
};
struct AnalysedGradient {
  std::int64_t examples = 0;
  double loss = 0;
};

const FieldList<AnalysedModel>& model_fields() {
  using M = AnalysedModel;
  static const FieldList<M> kFields{{"model", &M::model, ""},
                                    {"task", &M::task, ""},
                                    {"residual_scores", &M::residual_scores, ""},
                                    {"layers", &M::layers, ""},
                                    {"heads", &M::heads, ""},
                                    {"examples", &M::examples, ""},
                                    {"examples_asked", &M::examples_asked, ""},
                                    {"tokens", &M::tokens, ""},
                                    {"data", &M::data, ""},
                                    {"query_groups", &M::query_groups, ""},
                                    {"notes", &M::notes, ""},
                                    {"operators", &M::operators, ""},
                                    {"relative_tables", &M::relative_tables, ""},
                                    {"gradient_norms", &M::gradient_norms, ""}};
  return kFields;
}

const FieldList<AnalysedOperator>& operator_fields() {
  using O = AnalysedOperator;
  static const FieldList<O> kFields{{"operator", &O::name, ""},
                                    {"queries", &O::queries, ""},
                                    {"queries_without_visible_keys", &O::unseen, ""},
                                    {"mean_over_heads_by_layer", &O::statistics, ""}};
  return kFields;
}

const FieldList<AnalysedGradient>& gradient_fields() {
  using G = AnalysedGradient;
  static const FieldList<G> kFields{{"examples", &G::examples, ""}, {"loss", &G::loss, ""}};
  return kFields;
}

// The struct of an object in the summary. A wrong type is damage of a file, not wrong usage.
template <typename Struct>
Struct read(const FieldList<Struct>& fields, const Json& json, const std::string& where, const std::string& place) {
  if (!json.is_object()) fail(where, "{}: expected an object, got {}", place, json.type_name());
  try {
    return fields.read(json, where, place + ".");
  } catch (const UsageError& error) {
    throw Error(error.what());
  }
}

const Json& list(const Json& json, const std::string& where, const std::string& place) {
  if (!json.is_array()) fail(where, "{}: expected a list, got {}", place, json.type_name());
  return json;
}

void print_operator(const AnalysedOperator& of, const std::string& where, const std::string& place) {
  if (!of.statistics.is_object()) {
    fail(where, "{}.mean_over_heads_by_layer: expected an object, got {}", place, of.statistics.type_name());
  }
  std::vector<std::string> names;
  for (const auto& [name, numbers] : of.statistics.items()) names.push_back(name);
  print_entry("  attention " + of.name,
              fmt::format("{} queries, {} of them without a visible key", grouped(of.queries), grouped(of.unseen)));
  print_entry("    statistics", fmt::format("{}", fmt::join(names, ", ")));
}

void print_model(const AnalysedModel& model, const std::string& where, const std::string& place) {
  print_entry("model", model.model);
  print_entry("  residual scores", model.residual_scores);
  print_entry("  layers, heads", fmt::format("{}, {}", model.layers, model.heads));
  print_entry("  task of the data", model.task);
  if (!model.data.empty()) print_entry("  data", fmt::format("{}", fmt::join(model.data, ", ")));
  print_entry("  examples", fmt::format("{} of at most {}, {} tokens", grouped(model.examples),
                                        grouped(model.examples_asked), grouped(model.tokens)));
  print_entry("  query groups", fmt::format("{}", fmt::join(model.query_groups, ", ")));
  for (std::size_t i = 0; i < list(model.operators, where, place + ".operators").size(); ++i) {
    const std::string at = fmt::format("{}.operators[{}]", place, i);
    print_operator(read(operator_fields(), model.operators[i], where, at), where, at);
  }
  if (!list(model.relative_tables, where, place + ".relative_tables").empty())
    print_entry("  relative tables", grouped(static_cast<std::int64_t>(model.relative_tables.size())));
  const AnalysedGradient gradient = read(gradient_fields(), model.gradient_norms, where, place + ".gradient_norms");
  if (gradient.examples > 0) {
    print_entry("  gradient norms",
                fmt::format("of the loss {:.6g} of {} examples", gradient.loss, grouped(gradient.examples)));
  }
  for (const std::string& note : model.notes) print_entry("  note", note);
}

void print_arrays(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return;
  print_entry("arrays", fmt::format("{} in {}", data::list_arrays(file).size(), file.string()));
}

}  // namespace

void describe_analysis(const std::filesystem::path& path, const Json& summary) {
  const std::string where = path.string();
  const Json models = summary.value("models", Json());
  print_entry("analysis of attention", where);
  if (const Json logarithms = summary.value("logarithms", Json()); logarithms.is_string())
    print_entry("logarithms", logarithms.get<std::string>());
  for (std::size_t i = 0; i < list(models, where, "models").size(); ++i) {
    const std::string place = fmt::format("models[{}]", i);
    print_model(read(model_fields(), models[i], where, place), where, place);
  }
  print_arrays(path / "analysis.h5");
  for (std::size_t i = 1; i <= models.size(); ++i) print_arrays(path / fmt::format("model_{}/analysis.h5", i));
}

}  // namespace etc::cli
