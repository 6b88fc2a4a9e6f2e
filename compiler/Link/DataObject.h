// The job's data as a relocatable ELF object: the program table, the payload and the table of
// kernel addresses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan::link {

struct JobData {
  std::string_view program;                  ///< serialize() of the Program
  std::span<const std::string> kernels;      ///< symbols, in the order of Program::kernels
  std::span<const std::string_view> payload; ///< parts, laid one after another
};

/// Defines `titan_job_program`, `titan_job_payload` (page-aligned), `titan_job_kernels` and their
/// sizes (see runtime/job/Entry.cpp):
///
///   ELF header | .rodata: sizes, program | .payload | .data.rel.ro: kernel addresses | .rela |
///   symbols | strings | section headers
///
/// The payload's bytes are not part of `head` and `tail`: the file is head, the parts, tail. Equal
/// data gives equal bytes.
struct DataObject {
  std::string head, tail;
};
DataObject makeDataObject(const JobData& data);

} // namespace titan::link
