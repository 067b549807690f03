// The rules for every source file of the project, as functions of a file's path and text.
//
// The allowed includes between folders and of third-party headers are the table of architecture section 5; those inside
// tasks/ are from its README. The other rules are conventions. No function opens a file, so the rules themselves can be
// tested with invented text.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace etc::test {

// "sparse/labels/labels.h:7: sparse may not include data/dataset.h"
using Findings = std::vector<std::string>;

// Paths are relative to the checkout, with forward slashes.
// `exists` tells whether a file is in the checkout.
Findings check_includes(const std::string& path, std::string_view text,
                        const std::function<bool(const std::string&)>& exists);

// No longer than most_lines(path): a README 120 lines, a source file of the product 450, anything else 700.
std::ptrdiff_t most_lines(const std::string& path);
Findings check_length(const std::string& path, std::string_view text);

// At least 15 % of the non-blank lines of a folder's files must have a comment. For folders of kernels, whose code does not
// explain its reasons. `texts`: the folder's source files. counts.py prints the shares.
Findings check_comments(const std::string& folder, const std::vector<std::string_view>& texts);

// No path that exists only on one machine.
Findings check_machine_paths(const std::string& path, std::string_view text);

// No preprocessor conditional on a backend: backends are folders and kernel slots.
Findings check_backend_conditionals(const std::string& path, std::string_view text);

// No backend's name outside its folders: other code uses the interface Backend (etc_core/base/backend.h). Tests and
// benchmarks may name a backend.
Findings check_backend_names(const std::string& path, std::string_view text);

// A test file asserts something.
Findings check_assertions(const std::string& path, std::string_view text);

// A test file is a source of a test program. lists: the concatenated CMakeLists.txt of its folder, of the parent folder and
// of its subfolders.
Findings check_built(const std::string& path, std::string_view lists);

}  // namespace etc::test
