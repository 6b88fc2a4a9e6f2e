// titan-eager as a function.
#pragma once

#include <string>
#include <vector>

namespace titan {

/// Runs `titan-eager MODEL [compile options] COMMAND [job options]`; prints errors as one line on
/// stderr. Returns the exit code.
int eagerMain(const std::vector<std::string>& arguments);

} // namespace titan
