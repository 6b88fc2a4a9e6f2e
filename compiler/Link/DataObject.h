// The job's data as a relocatable ELF object: the tables of its programs and the addresses of their
// kernels.
#pragma once

#include "runtime/program/Error.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan::link {

/// Takes the next bytes.
using ByteSink = std::function<Status(std::string_view)>;

struct ProgramData {
  std::string_view table;               ///< serialize() of the Program
  std::span<const std::string> kernels; ///< symbols, in the order of Program::kernels
};

struct JobData {
  std::span<const ProgramData> programs;
  uint64_t payloadBytes = 0;
  std::function<Status(const ByteSink&)> payload; ///< writes them, in order and in pieces
};

/// Defines `titan_job_programs`, their number, and the payload's size (see
/// runtime/job/JobMain.cpp):
///
///   ELF header | .rodata: sizes, tables | .data.rel.ro: programs, kernel addresses | .rela |
///   symbols | strings | section headers
///
/// Equal data gives equal bytes.
std::string makeDataObject(const JobData& data);

} // namespace titan::link
