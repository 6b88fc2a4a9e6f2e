// The last stage: a planned module becomes machine code and a command table.
#pragma once

#include "runtime/program/Error.h"
#include "runtime/program/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace titan {

struct CodegenOptions {
  bool embedWeights = true;     ///< weights of files travel in the job's payload; else by path
  std::string weightsDirectory; ///< where their paths start; empty: the current directory
  std::string compilerVersion;
  std::string cache;         ///< a folder for compiled code (CodeCache.h); empty: none
  std::string buildIdentity; ///< with a cache: tells this build of the compiler from all others
};

/// A piece of the job's payload: bytes at hand, or a range of a file that is read when the job is
/// written.
struct PayloadPart {
  int64_t offset = 0, size = 0; ///< in the payload
  std::string bytes;            ///< empty: from the file
  std::string path;
  uint64_t fileOffset = 0;
  uint64_t digest = 0; ///< XXH3-64 that the file's bytes must have
};

struct CompiledModule {
  Program program;
  std::string
      code; ///< the image of the kernels, under Program::kernels' symbols; for a CPU an archive
  std::vector<PayloadPart> payload; ///< by rising offset
  int64_t payloadBytes = 0;
  std::vector<std::string> notes; ///< why the cache was of no use, if it was not
};

/// Internal when the module has not been through *plan*; BadInput, with the kernel's path, for a
/// kernel that cannot be generated.
Result<CompiledModule> generateCode(mlir::ModuleOp planned, const CodegenOptions& options);

/// The command table and the kernels' assembly, for `--emit=codegen`.
Result<std::string> printCode(mlir::ModuleOp planned, const CodegenOptions& options);

} // namespace titan
