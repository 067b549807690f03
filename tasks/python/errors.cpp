// Maps the library's errors to Python exceptions.
#include <string>

#include "tasks/library/longetc.h"
#include "tasks/python/bindings.h"

namespace etc::python {

namespace nb = nanobind;

namespace {

// One for each longetc::Error::Kind; never released, since exceptions may be raised until the interpreter ends.
PyObject* g_failure = nullptr;
PyObject* g_usage = nullptr;
PyObject* g_interrupted = nullptr;

PyObject* add_class(nb::module_& module, const char* name, const char* documentation, const nb::tuple& bases) {
  const std::string full = std::string("longetc.") + name;
  PyObject* const made = PyErr_NewExceptionWithDoc(full.c_str(), documentation, bases.ptr(), nullptr);
  if (made == nullptr) throw nb::python_error();
  module.attr(name) = nb::handle(made);
  return made;
}

PyObject* class_of(longetc::Error::Kind kind) {
  switch (kind) {
    case longetc::Error::Kind::usage:
      return g_usage;
    case longetc::Error::Kind::interrupted:
      return g_interrupted;
    default:
      return g_failure;
  }
}

// Messages may quote file contents, which need not be UTF-8.
void raise(const longetc::Error& error) {
  const std::string text = error.what();
  PyObject* const message = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (message == nullptr) return;
  PyErr_SetObject(class_of(error.kind()), message);
  Py_DECREF(message);
}

}  // namespace

void add_errors(nb::module_& module) {
  const nb::handle runtime(PyExc_RuntimeError), value(PyExc_ValueError), keyboard(PyExc_KeyboardInterrupt);
  g_failure = add_class(module, "Error", "What is wrong with data, files, numbers or the machine, and what to do.",
                        nb::make_tuple(runtime));
  g_usage = add_class(module, "UsageError", "What was asked for cannot be meant as it is.",
                      nb::make_tuple(nb::handle(g_failure), value));
  g_interrupted =
      add_class(module, "Interrupted",
                "A run was asked to stop, by a signal or by its progress function, and has saved what it had.",
                nb::make_tuple(keyboard));
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const longetc::Error& error) {
      raise(error);
    }
  });
}

}  // namespace etc::python
