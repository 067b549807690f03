// class Model: a model folder or weights of the caller, and its computations.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <new>

#include "tasks/library/longetc.h"
#include "tasks/python/arrays.h"
#include "tasks/python/bindings.h"
#include "tasks/python/call.h"

namespace etc::python {

using longetc::DocumentForm;
using longetc::Encoded;
using longetc::LoadOptions;
using longetc::Model;
using longetc::States;

namespace {

// (states [rows, H], offsets, token ids, their offsets, sentences, read, cut)
nb::tuple arrays_of(Encoded&& encoded) {
  auto* const numbers = const_cast<float*>(encoded.states.get());  // not shared with anything else
  nb::object states = array_of(
      numbers, {static_cast<std::size_t>(encoded.rows), static_cast<std::size_t>(encoded.columns)}, encoded.states);
  return nb::make_tuple(states, array_of(std::move(encoded.offsets)), array_of(std::move(encoded.tokens.ids)),
                        array_of(std::move(encoded.tokens.offsets)), array_of(std::move(encoded.sentences)),
                        array_of(std::move(encoded.read)), array_of(std::move(encoded.cut)));
}

// "float32", "bfloat16", "int64", …; "other" for types that weights cannot have.
std::string type_name(nb::dlpack::dtype type) {
  static const std::map<nb::dlpack::dtype_code, std::string> names = {{nb::dlpack::dtype_code::Float, "float"},
                                                                      {nb::dlpack::dtype_code::Bfloat, "bfloat"},
                                                                      {nb::dlpack::dtype_code::Int, "int"},
                                                                      {nb::dlpack::dtype_code::UInt, "uint"},
                                                                      {nb::dlpack::dtype_code::Bool, "bool"}};
  const auto found = names.find(static_cast<nb::dlpack::dtype_code>(type.code));
  return found == names.end() || type.lanes != 1 ? "other" : found->second + std::to_string(type.bits);
}

// An array of NumPy or of any library with DLPack, such as PyTorch.
using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

// The result refers to the arrays, whose Python objects are kept alive by `held`.
longetc::Weights weights_of(const nb::dict& arrays, std::vector<AnyArray>& held) {
  longetc::Weights weights;
  for (const auto& [name, values] : arrays) {
    AnyArray array;
    if (!nb::try_cast(values, array)) {
      throw nb::type_error(("weights: " + nb::cast<std::string>(name) + ": expected an array on the CPU").c_str());
    }
    longetc::Array given;
    given.name = nb::cast<std::string>(name);
    for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
      given.shape.push_back(static_cast<std::int64_t>(array.shape(axis)));
    }
    given.type = type_name(array.dtype());
    given.data = array.data();
    weights.arrays.push_back(std::move(given));
    held.push_back(std::move(array));
  }
  return weights;
}

void load(Model* self, const std::string& folder, const LoadOptions& options) {
  Model loaded = compute([&] { return Model(folder, options); });
  new (self) Model(std::move(loaded));
}

Model of_weights(const nb::dict& arrays, const std::string& family, const std::string& config,
                 const LoadOptions& options) {
  std::vector<AnyArray> held;
  longetc::Weights weights = weights_of(arrays, held);
  weights.family = family;
  weights.config = config;
  return compute([&] { return Model(weights, options); });
}

nb::tuple encode_texts(Model& self, const std::vector<std::string>& texts, States states, const nb::object& progress) {
  return arrays_of(compute([&] { return self.encode(texts, states, progress_of(progress)); }));
}

nb::tuple encode_ids(Model& self, const Input<std::int32_t>& ids, const Input<std::int64_t>& offsets,
                     const std::optional<Input<std::int32_t>>& sentences, States states, const nb::object& progress) {
  longetc::TokenInput input;
  input.ids = ids.data();
  input.offsets = offsets.data();
  input.texts = static_cast<std::int64_t>(offsets.size()) - 1;
  input.sentences = sentences ? sentences->data() : nullptr;
  return arrays_of(compute([&] { return self.encode(input, states, progress_of(progress)); }));
}

void add_options(nb::module_& module) {
  nb::class_<LoadOptions>(module, "LoadOptions")
      .def(nb::init<>())
      .def_rw("vocabulary", &LoadOptions::vocabulary)
      .def_rw("splitter", &LoadOptions::splitter)
      .def_rw("decoding", &LoadOptions::decoding)
      .def_rw("compute", &LoadOptions::compute)
      .def_rw("scores", &LoadOptions::scores)
      .def_rw("memory_limit", &LoadOptions::memory_limit)
      .def_rw("max_long_tokens", &LoadOptions::max_long_tokens);
  nb::enum_<States>(module, "States")
      .value("long", States::long_states)
      .value("global", States::global_states)
      .value("mean", States::mean);
  nb::enum_<DocumentForm>(module, "DocumentForm")
      .value("automatic", DocumentForm::automatic)
      .value("plain", DocumentForm::plain)
      .value("markdown", DocumentForm::markdown)
      .value("html", DocumentForm::html);
}

}  // namespace

void add_model(nb::module_& module) {
  add_options(module);
  nb::class_<Model>(module, "Model")
      .def("__init__", &load, nb::arg("folder"), nb::arg("options"))
      .def_static("of_weights", &of_weights, nb::arg("arrays"), nb::arg("family"), nb::arg("config"),
                  nb::arg("options"))
      .def_prop_ro("task", &Model::task)
      .def_prop_ro("config", &Model::config)
      .def_prop_ro("tokenizer", &Model::tokenizer)
      .def("encode_texts", &encode_texts, nb::arg("texts"), nb::arg("states"), nb::arg("progress").none())
      .def("encode_ids", &encode_ids, nb::arg("ids").noconvert(), nb::arg("offsets").noconvert(),
           nb::arg("sentences").noconvert().none(), nb::arg("states"), nb::arg("progress").none())
      .def(
          "predict",
          [](Model& self, const std::string& record) { return compute([&] { return self.predict(record); }); },
          nb::arg("record"))
      .def(
          "ask",
          [](Model& self, std::string_view document, const std::string& question, DocumentForm form) {
            return compute([&] { return self.ask(document, question, form); });
          },
          nb::arg("document"), nb::arg("question"), nb::arg("form"))
      .def(
          "keyphrases",
          [](Model& self, std::string_view document, DocumentForm form) {
            return compute([&] { return self.keyphrases(document, form); });
          },
          nb::arg("document"), nb::arg("form"));
}

}  // namespace etc::python
