// Finished input files of an unfinished run, so that a killed run goes on instead of starting again.
//
// Beside OUT.h5 a folder OUT.h5.parts holds, per finished input file: a data set of its examples, its report lines, its
// record ids and, written last, a small state file with its counts. All four are named after a key: a hash of the
// program's version, the configuration and of this and all earlier input files (all input files where records are
// chosen among all). Whatever changes, changes the key, so a part that is there fits. The state file holds the others'
// sizes and checksums, too, so that a damaged part is noticed. While a run is at work the folder has a file `lock`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "etc_core/base/error.h"
#include "etc_core/base/lock_file.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/base/out_of_memory.h"
#include "tasks/prepare/preparation.h"
#include "tasks/prepare/report.h"

namespace etc::prepare {

struct PartFiles {
  std::filesystem::path examples, report, ids, state;
  // Of preparations that make their examples of all records together: what a file's text was cut into, and of all files
  // the documents and what is made of them.
  std::filesystem::path pieces, sentences, begins, documents, instances;
};

class Parts : NotCopied {
 public:
  // configuration: everything that decides what is written, other than the input files.
  Parts(const std::filesystem::path& output, const Json& configuration);
  ~Parts();  // lets go of what hold() took; finished parts stay

  // Before any part is looked for or written: nobody else may until remove() or the end of this object. Makes the folder.
  // Throws Error when another run has it, naming its process.
  void hold();

  // depends_on: the input files that decide what is in the part.
  PartFiles files_of(const std::vector<data::SourceFile>& depends_on) const;

  // The counts of a finished part; nullopt when there is none. Nor is there when its files are not as finish() found them,
  // which a warning says.
  std::optional<Counts> finished(const PartFiles& files) const;
  void finish(const PartFiles& files, const Counts& counts) const;

  // What read() gives, which reads a part and nothing else. An Error in it goes on with the advice to delete the parts.
  template <typename Read>
  auto reading(const Read& read) const -> decltype(read()) {
    try {
      return read();
    } catch (const Interrupted&) {
      throw;
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& error) {
      fail_to_read(error);
    }
  }
  [[noreturn]] void fail_to_read(const Error& error) const;

  std::int64_t bytes() const;  // of the files of all parts

  // All parts, and the folder unless somebody put other files there. Where hold() was not called: unless another run does
  // hold them.
  void remove();

 private:
  std::vector<std::filesystem::path> files() const;  // of all parts
  bool take();                                       // the lock, or nothing
  void let_go();

  std::filesystem::path folder_;
  std::string configuration_;
  std::optional<LockFile> lock_;
};

}  // namespace etc::prepare
