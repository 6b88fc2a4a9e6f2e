// PTX to a cubin: by nvJitLink, which is loaded when it is first needed, or by a `ptxas` process.
#pragma once

#include "runtime/program/Error.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace titan::codegen::cuda {

/// What the assembler says of one entry point.
struct EntryUsage {
  std::string name;
  int64_t registers = 0;
  int64_t stackBytes = 0, spillBytes = 0; ///< spills: stores and loads
};

struct Cubin {
  std::string bytes;
  std::string log; ///< the assembler's own words
  std::vector<EntryUsage> entries;
};

class Assembler {
public:
  virtual ~Assembler() = default;
  /// "nvJitLink 13.0" or "ptxas 13.0", for notes.
  virtual std::string name() const = 0;
  /// Code of all entry points for `arch` ("sm_90"). Internal, with the log, when it refuses.
  virtual Result<Cubin> assemble(std::string_view ptx, const std::string& arch) const = 0;

  /// nvJitLink in the folders of TITAN_CUDA_LIBRARIES (separated by ':'), by the loader's search or
  /// in /usr/local/cuda; else `ptxas` of CUDA 12.0 or later on PATH or in /usr/local/cuda. Null:
  /// there is neither.
  static std::unique_ptr<Assembler> find();
  static std::unique_ptr<Assembler> findNvJitLink();
  static std::unique_ptr<Assembler> findPtxas();
  /// What find() looks for and how to get it, for the user.
  static std::string whatIsMissing();
};

/// Reads the registers, stack and spills of each entry from the log that `-v` asks for.
std::vector<EntryUsage> parseUsage(std::string_view log);

} // namespace titan::codegen::cuda
