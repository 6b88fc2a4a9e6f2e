// Target "cuda": kernels as entry points of one PTX module, and a cubin of it for each
// architecture.
#pragma once

#include "compiler/Codegen/Target.h"
#include "compiler/Codegen/cuda/Assembler.h"
#include "compiler/Codegen/cuda/KernelModule.h"
#include "runtime/program/Recipe.h"

namespace titan::codegen {

/// What `--arch` means for cards: "sm_80,sm_90". Usage for an unknown one, with the known ones.
Result<TargetInfo> resolveCards(std::string_view archs);

/// BadInput, with the key, for a recipe of several ranks or with `mesh.reduce = "tree"`.
Status checkRecipeForCards(const Recipe& recipe);

/// What a user is told where there is no assembler: a note that jobs carry PTX alone, or, where
/// other architectures than the default ones were asked for, Environment with what to install.
Result<std::string> withoutAssembler(std::string_view archs);

class CudaTarget : public Target {
public:
  /// BadInput where `info` names no card.
  static Result<std::unique_ptr<Target>> create(TargetInfo info, mlir::MLIRContext* context);

  ProgramTarget device() const override;
  const RoutineEmitter* routine(mlir::Attribute routine) const override;
  mlir::LogicalResult emit(kernel::FusedOp op, llvm::StringRef symbol) override;
  bool coversAll() const override { return false; }
  mlir::LogicalResult emit(kernel::CallOp op, llvm::StringRef symbol) override;
  /// What divides the addresses of the operands: accesses are as wide as it allows.
  std::string variant(kernel::FusedOp op) const override;
  std::string variant(kernel::CallOp op) const override;
  std::vector<GridLaunch> launches(llvm::StringRef symbol) const override;
  Launch launch(const LoopNest& nest, const Cost& cost) const override;
  Launch launch(kernel::CallOp op, const Cost& cost) const override;
  std::optional<LibraryCall> library(kernel::CallOp op) const override;
  /// A cubin for each architecture, then PTX, which later cards' drivers assemble. Without an
  /// assembler see withoutAssembler().
  Result<std::vector<CompiledImage>> finish() override;
  Result<std::string> finishAsText() override;

private:
  CudaTarget(TargetInfo info, mlir::MLIRContext* context);
  Result<std::string> ptx();
  /// A cubin for each architecture, of the cache where it has one.
  Result<std::vector<cuda::Cubin>> assemble(const cuda::Assembler& assembler,
                                            const std::string& ptx);
  /// The cubins of `ptx` as images; the cache keeps them.
  Result<std::vector<CompiledImage>> keep(const cuda::Assembler& assembler, const std::string& ptx,
                                          std::vector<cuda::Cubin> cubins);

  cuda::KernelModule kernels_;
};

} // namespace titan::codegen
