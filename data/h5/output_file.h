// The HDF5 file being written, on a disk that may fill up.
//
// HDF5 1.10 does not survive a failed write: H5Fclose then frees the file but keeps its identifier, and the program
// crashes when it ends. So the library never sees a failure: a small file driver remembers the first one, lets
// everything after it pass without effect, and check() throws it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/h5/library.h"

namespace etc::data::h5 {

class OutputFile {
 public:
  // An empty HDF5 file in place of the existing file `path`: format of HDF5 1.10, object times off. `where` names the
  // file in messages. Everything here: locked.
  OutputFile(const std::filesystem::path& path, std::string where);
  ~OutputFile();

  hid_t id() const { return file_.id(); }

  void check() const;  // throws Error when a write has failed so far
  void close();        // writes what the library still holds; throws as check()

  // What the driver knows of the file.
  struct State {
    int descriptor = -1;
    int error = 0;  // errno of the first failure
  };

 private:
  std::string where_;
  std::unique_ptr<State> state_;  // a fixed address: the driver points at it
  Handle file_;
};

}  // namespace etc::data::h5
