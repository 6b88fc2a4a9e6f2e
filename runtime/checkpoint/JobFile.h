// What a compiled job's file says without being run: its programs. They lie in the ELF image
// (compiler/Link), which keeps its symbols:
//
//   titan_job_program_count   u64
//   titan_job_programs        for each: address and bytes of its table, address and number of its
//                             kernels; u64
//   titan_job_tables          the tables, one behind the other
#pragma once

#include "runtime/checkpoint/Env.h"
#include "runtime/program/Program.h"

namespace titan::checkpoint {

/// The programs of the job at `path`, one a device, verified. BadInput: no job, a stripped one, or
/// one of another format version. Nothing of it is executed.
Result<std::vector<Program>> readJobFile(const std::string& path, Env& env = posixEnv());

} // namespace titan::checkpoint
