// Finished input files of an unfinished run, so that a killed run can continue instead of starting again.
//
// Beside OUT.h5 a folder OUT.h5.parts holds, per finished input file: a data set of its examples, its report lines, its
// record ids and, written last, a small state file with its counts. All four are named after a key: a hash of the
// program's version, the configuration and of this and all earlier input files (all input files if records are chosen
// among all). Any change changes the key, so an existing part always matches. The state file also holds the sizes and
// checksums of the others, so that a damaged part is detected. During a run the folder has a file `lock`.
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
  // For preparations that make their examples from all records together: the pieces of a file's text, and for all files
  // together the documents and the data made from them.
  std::filesystem::path pieces, sentences, begins, documents, instances;
};

class Parts : NotCopied {
 public:
  // configuration: everything that determines the output, other than the input files.
  Parts(const std::filesystem::path& output, const Json& configuration);
  ~Parts();  // releases the lock of hold(); finished parts stay

  // Call before any part is looked for or written: locks the folder until remove() or the end of this object. Creates
  // the folder. Throws Error when another run holds the lock, naming its process.
  void hold();

  // depends_on: the input files that determine the content of the part.
  PartFiles files_of(const std::vector<data::SourceFile>& depends_on) const;

  // The counts of a finished part; nullopt when there is none, or, with a warning, when its files are not as finish()
  // found them.
  std::optional<Counts> finished(const PartFiles& files) const;
  void finish(const PartFiles& files, const Counts& counts) const;

  // Returns the result of read(), which reads only a part. An Error in it is rethrown with the advice to delete the
  // parts.
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

  // Removes all parts, and the folder unless it contains other files. Without hold(): does so unless another run holds
  // the lock.
  void remove();

 private:
  std::vector<std::filesystem::path> files() const;  // of all parts
  bool take();                                       // acquires the lock if it is free
  void let_go();

  std::filesystem::path folder_;
  std::string configuration_;
  std::optional<LockFile> lock_;
};

}  // namespace etc::prepare
