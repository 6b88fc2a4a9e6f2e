// A small program that uses every struct of Program.h and every kind of member.
#pragma once

#include "runtime/program/Program.h"

namespace titan::testing {

/// Function "step": 0 zero, 1 repeat of 4, 2 a product of the input "x" with the state "fc.weight",
/// 3 end.
Program exampleProgram();

} // namespace titan::testing
