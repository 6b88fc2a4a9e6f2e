// The recipe of a run: as compiled, with the run-time keys of the command line.
#pragma once

#include "runtime/job/CommandLine.h"
#include "runtime/program/Program.h"
#include "runtime/program/Recipe.h"

namespace titan {

/// schedule.steps is filled in from the *compiled* train.steps: --steps moves the end of the run,
/// not the schedule. Usage: a key that is compiled in, or none. BadInput: an unknown key or a bad
/// value.
Result<Recipe> recipeOfRun(const Program& program, const JobOptions& options);
/// Does the command line set `key` itself?
bool setsKey(const JobOptions& options, std::string_view key);

} // namespace titan
