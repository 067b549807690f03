// Finished input files of an unfinished run, so that a killed run goes on instead of starting again.
//
// Beside OUT.h5 a folder OUT.h5.parts holds, per finished input file: a data set of its examples, its report lines, its
// record ids and, written last, a small state file with its counts. All four are named after a key: a hash of the
// program's version, the configuration and of this and all earlier input files (all input files where records are
// chosen among all). Whatever changes, changes the key, so a part that is there fits.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/prepare/preparation.h"
#include "tasks/prepare/report.h"

namespace etc::prepare {

struct PartFiles {
  std::filesystem::path examples, report, ids, state;
  // Of preparations that make their examples of all records together: what a file's text was cut into, and of all files
  // the documents and what is made of them.
  std::filesystem::path pieces, sentences, begins, documents, instances;
};

class Parts {
 public:
  // configuration: everything that decides what is written, other than the input files.
  Parts(const std::filesystem::path& output, const Json& configuration);

  // depends_on: the input files that decide what is in the part.
  PartFiles files_of(const std::vector<data::SourceFile>& depends_on) const;

  // The counts of a finished part; nullopt when there is none (or its state file is not readable as such).
  std::optional<Counts> finished(const PartFiles& files) const;
  void finish(const PartFiles& files, const Counts& counts) const;

  void remove() const;  // all parts, and the folder unless somebody put other files there

 private:
  std::filesystem::path folder_;
  std::string configuration_;
};

}  // namespace etc::prepare
