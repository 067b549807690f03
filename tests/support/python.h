// Python for cross-checks with established readers and writers (h5py, safetensors); not used by the program itself.
#pragma once

#include <optional>
#include <string>

namespace etc::test {

// A Python that can import these modules ("h5py, numpy"): ETC_TEST_PYTHON, else python3. nullopt: skip the test.
std::optional<std::string> python_with(const std::string& modules);

// Runs `python script arguments…` and returns its exit status; its output goes to the test's own output.
int run_python(const std::string& python, const std::string& script_and_arguments);

}  // namespace etc::test
