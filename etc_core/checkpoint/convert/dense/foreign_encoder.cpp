#include "etc_core/checkpoint/convert/dense/foreign_encoder.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/shape.h"
#include "etc_core/checkpoint/convert/bert/bert_names.h"
#include "etc_core/checkpoint/convert/bert/dense_bert.h"
#include "etc_core/checkpoint/convert/dense/families.h"
#include "etc_core/checkpoint/convert/model_type.h"
#include "etc_core/checkpoint/convert/unplaced.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/encoder.h"

namespace etc::convert {

namespace {

using Shape = std::vector<std::int64_t>;

struct Found {
  std::string stored;
  StoredPlace place;
};
using Places = std::map<std::string, Found, std::less<>>;  // by parameter

Places places_of(const TensorSource& source, const ForeignEncoder& foreign) {
  Places places;
  for (const auto& [stored, tensor] : source.tensors()) {
    StoredPlace place = foreign.place(stored);
    if (place.parameter.empty()) continue;
    const std::string name = place.parameter;
    const auto [there, fresh] = places.emplace(name, Found{stored, std::move(place)});
    if (!fresh) fail(source.where(), "{} and {} are the same variable", there->second.stored, stored);
  }
  return places;
}

// The expected shape of a parameter in the source.
Shape stored_shape(const Shape& own, const StoredPlace& place, const DenseConfig& config) {
  const std::int64_t heads = config.num_attention_heads, size = config.head_size();
  Shape shape = own;
  switch (place.form) {
    case StoredForm::plain:
      if (place.first_row > 0) shape[0] += place.first_row;
      break;
    case StoredForm::transposed:
      std::reverse(shape.begin(), shape.end());
      break;
    case StoredForm::heads:
      shape.pop_back();
      shape.insert(shape.end(), {heads, size});
      break;
    case StoredForm::by_heads:
      shape = {own[1], heads, size};
      break;
  }
  return shape;
}

std::string why_left_out(const TensorSource& source, const ForeignEncoder& foreign, std::string_view stored) {
  return is_beside_another(source, stored) ? kOptimiserSlot : foreign.why_left_out(stored);
}

// The source's tensors that are used for parameters.
std::set<std::string> used_tensors(const Places& places, const ParameterSet& parameters) {
  std::set<std::string> used;
  for (const auto& parameter : parameters.all()) {
    if (const auto found = places.find(parameter->name); found != places.end()) used.insert(found->second.stored);
  }
  return used;
}

// The encoder's tensors that have no parameter and no known reason to be left out: without them the model would compute
// something else.
std::vector<std::string> unplaced(const TensorSource& source, const ForeignEncoder& foreign,
                                  const std::set<std::string>& used) {
  std::vector<std::string> names;
  for (const auto& [stored, tensor] : source.tensors()) {
    if (used.contains(stored) || !foreign.is_encoder(stored)) continue;
    if (why_left_out(source, foreign, stored) == kUnknownTensor) names.push_back(stored);
  }
  return names;
}

void require_match(const TensorSource& source, const ForeignEncoder& foreign, const Places& places,
                   const ParameterSet& parameters) {
  std::vector<std::string> faults;
  for (const auto& parameter : parameters.all()) {
    const auto found = places.find(parameter->name);
    if (found == places.end()) {
      if (foreign.is_zero(parameter->name)) continue;
      faults.push_back(fmt::format("{} {} absent", parameter->name, shape_text(parameter->shape)));
      continue;
    }
    const SourceTensor& tensor = source.at(found->second.stored);
    const Shape expected = stored_shape(parameter->shape, found->second.place, foreign.config);
    if (!tensor.matches(expected)) {
      faults.push_back(fmt::format("{}: {}", found->second.stored, tensor.mismatch(expected)));
    }
  }
  require_all_matched(source, std::move(faults), unplaced(source, foreign, used_tensors(places, parameters)));
}

void read_parameter(const TensorSource& source, const Found& found, Parameter& parameter) {
  float* const out = parameter.allocate().data();
  const bool turned = found.place.form == StoredForm::transposed || found.place.form == StoredForm::by_heads;
  if (!turned && found.place.first_row == 0) return source.read_floats(found.stored, out);
  std::vector<float> stored(static_cast<std::size_t>(source.at(found.stored).count()));
  source.read_floats(found.stored, stored.data());
  if (turned) {
    transpose(stored.data(), parameter.shape[1], parameter.shape[0], out);
  } else {
    std::copy(stored.end() - parameter.size(), stored.end(), out);
  }
}

std::string from_text(const Found& found) {
  switch (found.place.form) {
    case StoredForm::transposed:
    case StoredForm::by_heads:
      return found.stored + ", transposed";
    default:
      return found.place.first_row == 0 ? found.stored
                                        : fmt::format("{}, from row {}", found.stored, found.place.first_row);
  }
}

ConversionReport report_of(const TensorSource& source, const ForeignEncoder& foreign, const Places& places,
                           const ParameterSet& parameters) {
  ConversionReport report;
  report.source = source.where();
  report.kind = foreign.kind;
  for (const auto& parameter : parameters.all()) {
    const auto found = places.find(parameter->name);
    if (found == places.end()) {
      report.initialised.push_back({parameter->name, parameter->shape, "zeros, as there"});
      continue;
    }
    report.copied.push_back({parameter->name, parameter->shape, from_text(found->second)});
  }
  const std::set<std::string> used = used_tensors(places, parameters);
  for (const auto& [stored, tensor] : source.tensors()) {
    if (used.count(stored) != 0) continue;
    report.left_out.push_back({stored, tensor.text(), why_left_out(source, foreign, stored)});
  }
  report.notes = foreign.notes;
  return report;
}

// Adds the parameters after the encoder (pooler, heads) with the shapes they have in the source.
void add_behind(const TensorSource& source, const Places& places, bool keep_heads, ParameterSet& parameters) {
  for (const auto& [name, found] : places) {
    if (!name.starts_with("bert/pooler/") && !(keep_heads && name.starts_with("cls/"))) continue;
    Shape shape = source.at(found.stored).shape;
    if (found.place.form == StoredForm::transposed) {
      if (shape.size() != 2) {
        fail(source.where(), "{}: expected a matrix, got {}", found.stored, source.at(found.stored).text());
      }
      std::swap(shape[0], shape[1]);
    }
    parameters.add(name, shape, {});
  }
}

}  // namespace

ConversionReport read_foreign(const TensorSource& source, const ForeignEncoder& foreign, bool keep_heads,
                              ParameterSet& parameters) {
  const Places places = places_of(source, foreign);
  const auto encoder = foreign.config.make_encoder(parameters);
  add_behind(source, places, keep_heads, parameters);
  require_match(source, foreign, places, parameters);
  source.require_numbers();
  parallel_for(static_cast<std::int64_t>(parameters.all().size()), [&](std::int64_t i) {
    Parameter& parameter = *parameters.all()[static_cast<std::size_t>(i)];
    const auto found = places.find(parameter.name);
    if (found == places.end()) {
      parameter.allocate().zero();
      return;
    }
    read_parameter(source, found->second, parameter);
    require_finite(source.where(), parameter);
  });
  return report_of(source, foreign, places, parameters);
}

const std::vector<std::string>& foreign_families() {
  static const std::vector<std::string> kFamilies = {"bert", "roberta", "nezha", "xlnet", "t5"};
  return kFamilies;
}

ForeignEncoder foreign_encoder(const std::string& family, const Json& json, const std::string& where,
                               const TensorSource& source) {
  if (family == "nezha") return nezha_encoder(json, where, source);
  if (family == "xlnet") return xlnet_encoder(json, where);
  if (family == "t5") return t5_encoder(json, where, source);
  require_model_type(json, where, family);
  const BertKind kind = family == "roberta" ? BertKind::roberta : BertKind::bert;
  return bert_encoder(bert_config_from_json(json, where, kind), kind, source);
}

std::int64_t numbered(std::string_view name, std::string_view prefix, std::string_view& rest) {
  if (!name.starts_with(prefix)) return -1;
  const char* const end = name.data() + name.size();
  std::int64_t number = -1;
  const auto [after, fault] = std::from_chars(name.data() + prefix.size(), end, number);
  if (fault != std::errc() || after == end || *after != '.') return -1;
  rest = {after + 1, static_cast<std::size_t>(end - after - 1)};
  return number;
}

std::string dense_layer(std::int64_t layer) {
  return fmt::format("bert/encoder/layer_{}/", layer);
}

std::string hub_activation(const std::string& name, const std::string& where, const std::string& key) {
  if (name == "gelu" || name == "gelu_python") return "gelu_erf";
  return etc_activation(name, where + ": " + key);
}

}  // namespace etc::convert
