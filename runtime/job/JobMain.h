// `main` of a compiled job, for the entries that are linked with one.
#pragma once

#include "runtime/job/ChooseDevice.h"

namespace titan {

/// Runs the job whose data the compiler's object file defines; `choose`, where it is not empty,
/// brings its device. Returns the exit code.
int jobMain(int argc, char** argv, DeviceChooser choose = {});

} // namespace titan
