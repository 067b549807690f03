// The rules every source file of the project must keep, as functions of a file's path and text.
//
// Include arrows and third-party doors are the table of architecture section 5, the floors of tasks/ its README's; the rest are habits worth a machine's
// eye. Nothing here opens a file, so the rules themselves are tested with made-up text.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace etc::test {

// "sparse/labels/masks.h:7: sparse may not include data/dataset.h"
using Findings = std::vector<std::string>;

// Paths are relative to the checkout, with forward slashes.
// `exists` tells whether such a file is in the checkout.
Findings check_includes(const std::string& path, std::string_view text,
                        const std::function<bool(const std::string&)>& exists);

// No longer than most_lines(path): a README 120 lines, a source file of the product 450, anything else 700.
std::ptrdiff_t most_lines(const std::string& path);
Findings check_length(const std::string& path, std::string_view text);

// Of the non-blank lines of a folder's files at least 15 in 100 hold a comment: for folders of kernels, whose code does
// not say by itself why it is as it is. `texts`: the folder's source files. counts.py prints the shares.
Findings check_comments(const std::string& folder, const std::vector<std::string_view>& texts);

// No path of one machine.
Findings check_machine_paths(const std::string& path, std::string_view text);

// No preprocessor conditional on a backend: backends are folders and kernel slots.
Findings check_backend_conditionals(const std::string& path, std::string_view text);

// No backend's name outside of its folders: what others need to know of it is in Backend (etc_core/base/backend.h).
// Tests and benches may name it.
Findings check_backend_names(const std::string& path, std::string_view text);

// A test file asserts something.
Findings check_assertions(const std::string& path, std::string_view text);

// A test file is a source of a test program. lists: the CMakeLists.txt of its folder, of the one above and
// of those in it, one text.
Findings check_built(const std::string& path, std::string_view lists);

}  // namespace etc::test
