// Opens an untrusted file in a child process first, so that a library that crashes, hangs or exits on damaged bytes
// becomes an error message instead of the end of the program (HDF5 and SentencePiece do all three).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace etc::data {

// What the child may use in addition to what the process holds when it forks. Zeros: derived from the file size (memory
// 1 GiB + 32 times the size, at most 16 GiB; CPU time 20 s + 1 s per 4 MiB; wall time six times that, since the machine
// may be busy).
struct ProbeLimits {
  std::uint64_t memory_bytes = 0;
  int cpu_seconds = 0;
  int wall_seconds = 0;
};

// Runs body() in a forked child and returns only if it completed there; the caller then repeats the work in its own
// process. `what` names the kind of file in messages ("SentencePiece model").
//
// Errors: an etc::Error thrown by body() arrives unchanged; every other exception, termination by a signal, an exit and
//   an exceeded limit become Error("<file>: …"). Under the sanitizers memory is not limited (they reserve terabytes).
// Rules: the child has one thread, so body() must use neither parallel_for nor run_probe, and no lock that another
//   thread may hold; what it changes is lost, and what it prints goes to /dev/null. Thread-safe (one probe at a time).
// Cost: a fork (about 1 ms per GiB the process holds) and one run of body().
void run_probe(const std::string& what, const std::filesystem::path& file, const std::function<void()>& body,
               const ProbeLimits& limits = {});

}  // namespace etc::data
