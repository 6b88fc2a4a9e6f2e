// The last stage: a planned module becomes machine code and a command table.
#pragma once

#include "compiler/Codegen/Target.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace titan {

struct CodegenOptions {
  bool embedWeights = true;      ///< weights of files travel in the job's payload; else by path
  std::string weightsDirectory;  ///< where their paths start; empty: the current directory
  bool referenceKernels = false; ///< of a card's table, so that a CPU can walk it
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

/// Parts of the payload start at multiples of 64, so that a mapped job needs no copy of them.
constexpr int64_t alignedPart(int64_t offset) { return (offset + 63) / 64 * 64; }

struct CompiledModule {
  Program program;
  /// With the kernels, under Program::kernels' symbols. Those for cards are parts of the payload,
  /// too; what is for a CPU is linked.
  std::vector<codegen::CompiledImage> images;
  std::vector<PayloadPart> payload; ///< by rising offset
  int64_t payloadBytes = 0;
  /// Symbols of code for the host, as a job lists their addresses (KernelTable).
  std::vector<std::string> hostSymbols;
  std::vector<std::string> notes; ///< of the target, and why the cache was of no use
};

/// Internal when the module has not been through *plan*; BadInput, with the op's path, where the
/// target has no code for it.
Result<CompiledModule> generateCode(mlir::ModuleOp planned, const CodegenOptions& options);

/// The command table and the kernels' assembly, for `--emit=codegen`.
Result<std::string> printCode(mlir::ModuleOp planned, const CodegenOptions& options);

} // namespace titan
