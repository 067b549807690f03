// The extension module _longetc: the library's public header for Python. The public API is longetc/__init__.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "tasks/library/longetc.h"
#include "tasks/python/bindings.h"
#include "tasks/python/call.h"

namespace {

namespace nb = nanobind;
using etc::python::UnderWay;

void set_threads(int count) {
  const UnderWay counted;
  const nb::gil_scoped_release released;
  const std::unique_lock alone(etc::python::thread_count_in_use());
  longetc::set_threads(count);
}

// Messages go to function(warning, text), from whichever thread they come; None: dropped. An exception of the function
// is printed like one of a destructor, and the call continues.
void set_log(const nb::object& function) {
  std::function<void(longetc::Level, const std::string&)> receiver;
  if (!function.is_none()) {
    // Released with the last copy of the receiver, on whichever thread that is.
    const std::shared_ptr<PyObject> kept(nb::object(function).release().ptr(), [](PyObject* object) {
      if (!nb::is_alive()) return;
      const nb::gil_scoped_acquire held;
      Py_DECREF(object);
    });
    receiver = [kept](longetc::Level level, const std::string& message) {
      if (!nb::is_alive()) return;
      const nb::gil_scoped_acquire held;
      try {
        nb::handle(kept.get())(level == longetc::Level::warning, nb::str(message.c_str(), message.size()));
      } catch (nb::python_error& error) {
        error.discard_as_unraisable("longetc's log");
      }
    };
  }
  const nb::gil_scoped_release released;  // a message being delivered waits for the GIL
  longetc::set_log(std::move(receiver));
}

}  // namespace

NB_MODULE(_longetc, module) {
  etc::python::add_errors(module);
  etc::python::add_tokenizer(module);
  etc::python::add_model(module);
  etc::python::add_runs(module);
  module.def("version", &longetc::version);
  module.def("threads", &longetc::threads);
  module.def("set_threads", &set_threads, nb::arg("count"));
  module.def("set_log", &set_log, nb::arg("function").none());
}
