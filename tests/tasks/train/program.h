// Runs the program itself (ETC_PROGRAM, set by CTest) in child processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc::test {

// The program's path; nullopt: unknown, skip the test.
std::optional<std::string> program();

// A running child; its standard output and error go to files that are overwritten.
class Child : NotCopied {
 public:
  Child(const std::vector<std::string>& command, const std::filesystem::path& output);
  ~Child();  // kills it if it still runs

  bool running();
  // Waits until reached() is true or the child has ended, sleeping in between so as not to take processor time from it.
  template <typename Condition>
  void run_until(const Condition& reached) {
    while (running() && !reached()) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  pid_t pid() const { return pid_; }  // while it runs
  bool catches(int signal) const;     // whether it has installed a handler for the signal
  void send(int signal);
  int wait();  // exit code; 128 + signal when it was killed
  // Peak RSS, known after its end. At least that of this process when it started the child (getrusage), so a test with
  // large arrays of its own takes what the program says (megabytes_told).
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  void end(int options);  // waits with the options of waitpid

  pid_t pid_ = -1;
  int status_ = -1;
  std::int64_t peak_bytes_ = 0;
};

struct Result {
  int code = 0;
  std::string out, err;
  std::int64_t peak_bytes = 0;
};

// Runs the program with these arguments to its end.
Result run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                   const std::string& standard_input = "");

// The megabytes behind `what` in a text of the program: "<what> 61.3 MB: …". The test fails if it is not there.
double megabytes_told(const std::string& text, const std::string& what);

}  // namespace etc::test
