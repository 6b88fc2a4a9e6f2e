// A small program that uses every struct of Program.h and every kind of member.
#pragma once

#include "runtime/program/Program.h"

#include <functional>
#include <string>
#include <vector>

namespace titan::testing {

/// Function "step" of a mesh "replicate" = 2, "shard" = 3: 0 zero, 1 repeat of 4, 2 a product of the
/// input "x" with the state "fc.weight", 3 end, 4 and 5 start of and wait for an all_reduce of 100
/// f32 and one i64 over all ranks.
Program exampleProgram();

/// What verify() says of it after a change; empty: nothing.
std::string errorAfter(const std::function<void(Program&)>& change);
/// After a change of its commands.
std::string errorAfterCommands(const std::function<void(std::vector<Command>&)>& change);

} // namespace titan::testing
