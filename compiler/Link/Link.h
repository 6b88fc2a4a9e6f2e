// The last stage: kernels, data and the runtime become one executable, linked in process by lld.
#pragma once

#include "compiler/Link/DataObject.h"
#include "runtime/program/Error.h"

namespace titan::link {

/// Where the runtime's archives and the C and C++ start files lie: lib/titan beside the directory
/// of the executable, or of the shared library that this is part of, or $TITAN_LIBRARY_DIR.
/// Environment when it is not there.
Result<std::string> findLibraryDirectory();

/// Writes the executable `output`, whole or not at all, through a directory beside it. `kernels` is
/// an archive of relocatable objects that define the kernels of the programs, or empty. The result
/// needs libc and libm at run time. Equal inputs give equal bytes. Environment: the output cannot
/// be written; Internal: lld refuses; what `data.payload` returns.
Status linkJob(std::string_view kernels, const JobData& data, const std::string& output);

} // namespace titan::link
