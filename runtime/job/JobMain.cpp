// What the compiler links a job against: the job's object file defines these symbols.
#include "runtime/job/JobImage.h"

extern "C" {
extern const char titan_job_program[];
extern const uint64_t titan_job_program_size;
extern const titan::KernelFunction titan_job_kernels[];
extern const uint64_t titan_job_kernel_count;
extern const char titan_job_payload[];
extern const uint64_t titan_job_payload_size;

int titan_job_main(int argc, char** argv) {
  const titan::JobImage image{{titan_job_program, titan_job_program_size},
                              {titan_job_kernels, titan_job_kernel_count},
                              {titan_job_payload, titan_job_payload_size},
                              argc > 0 ? argv[0] : "job"};
  return titan::runJob({argv + (argc > 0 ? 1 : 0), argv + argc}, image);
}
}
