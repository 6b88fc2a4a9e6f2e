// Where the vendor's libraries lie.
#pragma once

#include <string>

namespace titan::cuda {

/// Folders with the vendor's libraries, in the order in which they are looked for, ':' between
/// them.
constexpr const char* librariesVariable = "TITAN_CUDA_LIBRARIES";

/// The file in the first of these folders that has it, or the name alone, for the loader.
std::string locateLibrary(const char* name);

} // namespace titan::cuda
