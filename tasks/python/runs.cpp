// prepare and train: long runs that write files.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "tasks/library/longetc.h"
#include "tasks/python/bindings.h"
#include "tasks/python/call.h"

namespace etc::python {

using longetc::PrepareOptions;
using longetc::PrepareReport;
using longetc::ProgressReport;
using longetc::TrainOptions;
using longetc::TrainReport;

namespace {

void add_prepare(nb::module_& module) {
  nb::class_<PrepareOptions>(module, "PrepareOptions")
      .def(nb::init<>())
      .def_rw("task", &PrepareOptions::task)
      .def_rw("inputs", &PrepareOptions::inputs)
      .def_rw("targets", &PrepareOptions::targets)
      .def_rw("vocabulary", &PrepareOptions::vocabulary)
      .def_rw("output", &PrepareOptions::output)
      .def_rw("report", &PrepareOptions::report)
      .def_rw("split", &PrepareOptions::split)
      .def_rw("settings", &PrepareOptions::settings)
      .def_rw("strict", &PrepareOptions::strict);
  nb::class_<PrepareReport>(module, "PrepareReport")
      .def_ro("records", &PrepareReport::records)
      .def_ro("examples", &PrepareReport::examples)
      .def_ro("rejected", &PrepareReport::rejected)
      .def_ro("dropped", &PrepareReport::dropped)
      .def_ro("complete", &PrepareReport::complete)
      .def_ro("summary", &PrepareReport::summary);
  module.def(
      "prepare",
      [](const PrepareOptions& options, const nb::object& progress) {
        return run([&] { return longetc::prepare(options, progress_of(progress)); });
      },
      nb::arg("options"), nb::arg("progress").none());
}

}  // namespace

void add_runs(nb::module_& module) {
  nb::class_<ProgressReport>(module, "ProgressReport")
      .def_ro("what", &ProgressReport::what)
      .def_ro("unit", &ProgressReport::unit)
      .def_ro("note", &ProgressReport::note)
      .def_ro("done", &ProgressReport::done)
      .def_ro("total", &ProgressReport::total);
  add_prepare(module);
  nb::class_<TrainOptions>(module, "TrainOptions")
      .def(nb::init<>())
      .def_rw("config_file", &TrainOptions::config_file)
      .def_rw("config", &TrainOptions::config)
      .def_rw("output", &TrainOptions::output);
  nb::class_<TrainReport>(module, "TrainReport").def_ro("step", &TrainReport::step).def_ro("best", &TrainReport::best);
  module.def(
      "train",
      [](const TrainOptions& options, const nb::object& progress) {
        return run([&] { return longetc::train(options, progress_of(progress)); });
      },
      nb::arg("options"), nb::arg("progress").none());
}

}  // namespace etc::python
