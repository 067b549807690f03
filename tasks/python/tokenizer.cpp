// class Tokenizer, and vectors of texts in general.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "tasks/library/longetc.h"
#include "tasks/python/arrays.h"
#include "tasks/python/bindings.h"
#include "tasks/python/call.h"

namespace etc::python {

using longetc::Tokenizer;

void add_tokenizer(nb::module_& module) {
  nb::class_<Tokenizer>(module, "Tokenizer")
      .def(
          "__init__",
          [](Tokenizer* self, const std::string& vocabulary, bool lower_case) {
            Tokenizer loaded = compute([&] { return Tokenizer(vocabulary, lower_case); });
            new (self) Tokenizer(std::move(loaded));
          },
          nb::arg("vocabulary"), nb::arg("lower_case"))
      .def(
          "encode",
          [](const Tokenizer& self, const std::vector<std::string>& texts) {
            longetc::Tokens tokens = compute([&] { return self.encode(texts); });
            return nb::make_tuple(array_of(std::move(tokens.ids)), array_of(std::move(tokens.offsets)));
          },
          nb::arg("texts"))
      .def(
          "decode",
          [](const Tokenizer& self, const Input<std::int32_t>& ids) { return self.decode(ids.data(), ids.size()); },
          nb::arg("ids").noconvert())
      .def("piece", &Tokenizer::piece, nb::arg("id"))
      .def("id_of", &Tokenizer::id_of, nb::arg("piece"))
      .def_prop_ro("size", &Tokenizer::size)
      .def_prop_ro("kind", &Tokenizer::kind)
      .def_prop_ro("sha256", &Tokenizer::sha256);
}

}  // namespace etc::python
