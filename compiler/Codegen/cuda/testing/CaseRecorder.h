// Records what the tests run on the interpreter, for a card without a compiler:
//
//   TITAN_RECORD_CASES=FILE      the file that is written when the tests are through
//   TITAN_RECORD_ARCH=sm_90      cubins for it, where there is an assembler
//   TITAN_RECORD_BYTES=N         cases of more operand bytes are left out (1 MiB)
//
// runtime/device/cuda/testing/cases reads the file and runs it.
#pragma once

#include "compiler/Codegen/cuda/Assembler.h"
#include "compiler/Codegen/cuda/KernelModule.h"
#include "runtime/device/cuda/testing/cases/KernelCase.h"
#include "runtime/device/cuda/testing/ptx/Ptx.h"

#include <set>

namespace titan::codegen::cuda::testing {

class CaseRecorder {
public:
  /// Null: nothing is recorded.
  static CaseRecorder* get();

  /// Notes the operands of `kernel`, a kernel.fused or kernel.call, before its launches.
  void begin(const std::string& ptx, mlir::Operation* kernel, llvm::ArrayRef<Entry> entries,
             std::span<const uint64_t> operands, std::span<const int64_t> scalars,
             ptx::Memory& memory);
  /// Notes them behind its launches, and keeps the case unless it is known.
  void end(ptx::Memory& memory);
  /// Writes the file; what it holds is printed.
  Status write() const;

private:
  CaseRecorder(std::string path, std::string arch, int64_t mostBytes);
  cases::CaseModule moduleOf(const std::string& ptx) const;

  std::string path_, arch_;
  int64_t mostBytes_;
  std::unique_ptr<Assembler> assembler_;
  cases::CaseFile file_;
  std::set<std::string> known_;          ///< digests of cases
  std::map<std::string, uint64_t> code_; ///< modules by their PTX's digest
  int64_t repeated_ = 0, large_ = 0;
  cases::KernelCase case_;          ///< between begin and end
  std::vector<uint64_t> addresses_; ///< of its regions
};

} // namespace titan::codegen::cuda::testing
