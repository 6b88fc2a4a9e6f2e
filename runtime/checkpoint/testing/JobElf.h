// What of a job's ELF image JobFile reads, made by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace titan::checkpoint {

struct JobElf {
  std::vector<std::string> tables; ///< of its programs
  std::string countName = "titan_job_program_count";
  uint64_t sectionAddress = 0x1000; ///< of its data: symbols count from there
  uint64_t tooMany = 0;             ///< added to the bytes that its first table is said to have

  std::string bytes() const;
};

} // namespace titan::checkpoint
