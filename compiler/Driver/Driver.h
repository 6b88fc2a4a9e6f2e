// titan-compile as a function.
#pragma once

#include <string>
#include <vector>

namespace titan {

/// Runs `titan-compile <arguments>`; prints errors as one line `error: ...` on stderr. Returns the
/// exit code.
int compileMain(const std::vector<std::string>& arguments, const std::string& executable);

} // namespace titan
