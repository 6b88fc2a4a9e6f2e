// The kernels of a job: equal bodies once.
#pragma once

#include "compiler/Codegen/TargetInfo.h"
#include "compiler/Codegen/cpu/FusedKernel.h"
#include "runtime/program/Program.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace titan::codegen {

/// The matrix product that `op` calls, as the job's table lists it.
Gemm toGemm(kernel::CallOp op);

class KernelTable {
public:
  KernelTable(mlir::MLIRContext* context, const TargetInfo& target);

  /// Index in Program::kernels of the code for `op`, emitted on the first call for its body. Fails
  /// with a diagnostic on the op.
  mlir::FailureOr<uint32_t> kernelFor(kernel::FusedOp op);
  /// The same for a routine that is generated here, which all but matrix products are.
  mlir::FailureOr<uint32_t> kernelFor(kernel::CallOp op);
  /// Index in Program::libraryCalls.
  uint32_t gemmFor(kernel::CallOp op);

  const VectorShape& shape() const { return shape_; }
  mlir::ModuleOp module() { return *module_; }
  /// Moves symbols, labels and configurations to the program.
  void finish(Program& program);

private:
  struct Entry {
    std::string symbol, description;
    llvm::SetVector<mlir::Attribute> paths;
    std::string label() const;
  };

  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::OpBuilder builder_;
  VectorShape shape_;
  std::vector<Entry> kernels_;
  llvm::StringMap<uint32_t> fused_, routines_;
  struct GemmEntry {
    Gemm gemm;
    Entry entry;
    uint32_t fallback;
  };
  std::vector<GemmEntry> gemms_;
};

} // namespace titan::codegen
