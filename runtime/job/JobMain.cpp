// What the compiler links a job against: the job's object file defines these symbols.
#include "runtime/job/JobMain.h"

#include "runtime/job/JobImage.h"
#include "runtime/program/Process.h"

extern "C" {
extern const struct {
  const char* table;
  uint64_t tableBytes;
  const titan::KernelFunction* kernels;
  uint64_t kernelCount;
} titan_job_programs[];
extern const uint64_t titan_job_program_count;
extern const uint64_t titan_job_payload_size;
}

namespace titan {

int jobMain(int argc, char** argv, DeviceChooser choose) {
  prepareProcess();
  JobImage image{{}, {}, argc > 0 ? argv[0] : "job", {}, titan_job_payload_size, std::move(choose)};
  for (uint64_t i = 0; i < titan_job_program_count; ++i) {
    const auto& program = titan_job_programs[i];
    image.programs.push_back(
        {{program.table, program.tableBytes}, {program.kernels, program.kernelCount}});
  }
  return runJob({argv + (argc > 0 ? 1 : 0), argv + argc}, image);
}

} // namespace titan
