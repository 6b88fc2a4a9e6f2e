// Target "cpu": kernels as functions over a range of units, in one ELF object.
#pragma once

#include "compiler/Codegen/Target.h"
#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/FusedKernel.h"

#include "mlir/IR/OwningOpRef.h"

namespace titan::codegen {

class CpuTarget : public Target {
public:
  /// BadInput where `info` names no CPU; `native` becomes this machine's.
  static Result<std::unique_ptr<Target>> create(TargetInfo info, mlir::MLIRContext* context);
  static Result<std::unique_ptr<CpuTarget>> createCpu(TargetInfo info, mlir::MLIRContext* context);
  /// What kernels are shaped by. Tests take another than the CPU's, before anything is emitted.
  VectorShape& shape() { return shape_; }

  ProgramTarget device() const override;
  const RoutineEmitter* routine(mlir::Attribute routine) const override;
  mlir::LogicalResult emit(kernel::FusedOp op, llvm::StringRef symbol) override;
  mlir::LogicalResult emit(kernel::CallOp op, llvm::StringRef symbol) override;
  Launch launch(const LoopNest& nest, const Cost& cost) const override;
  Launch launch(kernel::CallOp op, const Cost& cost) const override;
  std::optional<LibraryCall> library(kernel::CallOp op) const override;
  Result<std::vector<CompiledImage>> finish() override;
  Result<std::string> finishAsText() override;

protected:
  /// With the CPU that `native` stands for, and with its class's machine model where there is none.
  static Result<TargetInfo> checked(TargetInfo info);
  CpuTarget(TargetInfo info, mlir::MLIRContext* context);

private:
  VectorShape shape_;
  mlir::OwningOpRef<mlir::ModuleOp> kernels_;
  mlir::OpBuilder builder_;
};

} // namespace titan::codegen
