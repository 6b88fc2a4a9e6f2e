// What a compiled job carries, and the one function that runs it.
#pragma once

#include "runtime/job/ChooseDevice.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan {

namespace checkpoint {
class Env;
}

/// One program of a job.
struct JobProgram {
  std::string_view table; ///< serialize() of the Program
  std::span<const KernelFunction> kernels = {};
};

struct JobImage {
  std::vector<JobProgram> programs; ///< one a device
  std::string_view payload;         ///< weights and constants; empty where they lie in a file
  /// Path of the job as it was called; "<executable>.run" is the default --out.
  std::string executable;
  /// Of the weights that the program refers to; empty: that of the executable.
  std::string weightsDirectory = {};
  /// Of the payload at the end of the process's own file (runtime/program/Payload.h); 0: `payload`.
  uint64_t attachedBytes = 0;
  /// Brings a device in place of chooseDevice()'s; called once.
  DeviceChooser chooseDevice = {};
  /// The files that a run saves to; null: the system's.
  checkpoint::Env* files = nullptr;
};

/// `./job <arguments>`: parses, runs, prints errors as one line `error: ...` on stderr. Returns the
/// exit code.
int runJob(const std::vector<std::string>& arguments, const JobImage& image);

} // namespace titan
