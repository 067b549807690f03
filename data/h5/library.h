// Wraps the HDF5 library (C interface, 1.10): serialises calls, owns identifiers and converts errors to etc::Error.
//
// Invariant: only one thread at a time is inside the library. The caller of an H5… function must hold a Lock. Functions
// of data/h5/ documented as "locked" expect the caller to hold it; the public classes of data/dataset.h take it. The
// library's errors name neither file nor data set, so every check of a call takes a `where` of the form "h5:
// <file>:<path of the object>".
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

namespace etc::data::h5 {

// Held during calls into the library. Not recursive: only the outermost function takes it.
class Lock {
 public:
  Lock();

 private:
  std::lock_guard<std::mutex> guard_;
};

// The innermost reason the library gave for the last failed call, or "no reason given". Locked. Call it at once: the
// next successful call into the library clears it.
std::string library_reason();

// Throws Error("<where>: cannot <action>: <reason> (<advice>)"); without advice the brackets are left out. Locked.
[[noreturn]] void fail_library(const std::string& where, const char* action, const char* advice);

inline constexpr const char* kDamaged = "the file is damaged";

// Checks what a library call returned: negative is failure. Locked.
inline void require(std::int64_t status, const std::string& where, const char* action, const char* advice = "") {
  if (status < 0) fail_library(where, action, advice);
}

// Owns one identifier (file, group, data set, type, …) and closes it with the function given. Moves and destruction of
// a non-empty handle: locked.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  // Throws as fail_library when id is negative.
  Handle(hid_t id, Close closing, const std::string& where, const char* action, const char* advice = "")
      : id_(id), close_(closing) {
    if (id < 0) fail_library(where, action, advice);
  }
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, -1);
      close_ = other.close_;
    }
    return *this;
  }

  hid_t id() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

  void reset() noexcept {
    if (id_ >= 0) close_(std::exchange(id_, -1));
  }
  // Like reset, but throws on failure.
  void close(const std::string& where) {
    if (id_ >= 0) require(close_(std::exchange(id_, -1)), where, "close");
  }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// Opens the file for reading, without HDF5's file locks (they fail on some network file systems, and finished files
// never change: they are renamed into place). Throws Error when it is missing, a folder or not HDF5. Locked.
Handle open_file(const std::filesystem::path& path);

// A new group, object times off. `where` names it. Locked.
Handle create_group(hid_t parent, const std::string& name, const std::string& where);

// A group of `parent` reached by a hard link. `where` names the group. Locked.
Handle open_group(hid_t parent, const std::string& name, const std::string& where);

// Throws unless `parent` has a hard link `name`: soft and external links may point outside the file. Locked.
void require_hard_link(hid_t parent, const std::string& name, const std::string& where);

// "h5: <file>", the beginning of every message about a file.
std::string where_of(const std::filesystem::path& path);

}  // namespace etc::data::h5
