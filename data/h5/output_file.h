// The HDF5 file being written, on a disk that may fill up.
//
// HDF5 1.10 does not handle a failed write: H5Fclose then frees the file but keeps its identifier, and the program
// crashes at exit. Failures are therefore hidden from the library: a small file driver stores the first one, turns all
// later operations into no-ops that succeed, and check() throws the stored error.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/h5/library.h"

namespace etc::data::h5 {

class OutputFile {
 public:
  // Replaces the existing file `path` by an empty HDF5 file: format of HDF5 1.10, object times off. `where` names the
  // file in messages. Everything here: locked.
  OutputFile(const std::filesystem::path& path, std::string where);
  ~OutputFile();

  hid_t id() const { return file_.id(); }

  void check() const;  // throws Error if a write has failed
  void close();        // flushes the library's buffers; throws like check()

  // The driver's state.
  struct State {
    int descriptor = -1;
    int error = 0;  // errno of the first failure
  };

 private:
  std::string where_;
  std::unique_ptr<State> state_;  // on the heap: the driver keeps its address
  Handle file_;
};

}  // namespace etc::data::h5
