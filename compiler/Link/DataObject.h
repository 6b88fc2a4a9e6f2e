// The job's data as a relocatable ELF object: the tables of its programs, the payload, and the
// addresses of the kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan::link {

struct ProgramData {
  std::string_view table;               ///< serialize() of the Program
  std::span<const std::string> kernels; ///< symbols, in the order of Program::kernels
};

struct JobData {
  std::span<const ProgramData> programs;
  std::span<const std::string_view> payload; ///< parts, laid one after another
};

/// Defines `titan_job_programs`, `titan_job_payload` (page-aligned) and their sizes (see
/// runtime/job/JobMain.cpp):
///
///   ELF header | .rodata: sizes, tables | .payload | .data.rel.ro: programs, kernel addresses |
///   .rela | symbols | strings | section headers
///
/// The payload's bytes are not part of `head` and `tail`: the file is head, the parts, tail. Equal
/// data gives equal bytes.
struct DataObject {
  std::string head, tail;
};
DataObject makeDataObject(const JobData& data);

} // namespace titan::link
