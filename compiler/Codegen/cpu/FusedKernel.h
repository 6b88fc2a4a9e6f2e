// kernel.fused -> one function over a range of units.
//
// Dimensions that no reduction combines are parallel: a unit is one point of them, with a block of
// the innermost one where that is parallel. Inside a unit each reduction is a pass of its own
// (those that wait for the same ones and run over the same dimensions share it), and all results
// are written after the last: so an out may lie on an in that it walks alike. Passes load their
// operands again and repeat cheap arithmetic.
#pragma once

#include "compiler/Codegen/kernel/LoopNest.h"
#include "compiler/Support/MachineModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace titan::codegen {

/// What multiplies tiles of bf16 (MatrixUnit.h). Emulated is for tests: any CPU runs it.
enum class MatrixUnitKind { None, Amx, Emulated };

/// What kernels are shaped by: vector lengths of a target, in elements, whatever the element type,
/// and the numbers of its machine model.
struct VectorShape {
  int64_t width = 16; ///< f32 elements of one register
  /// Multiply-adds of bf16 by the instruction that takes them in pairs, for one of f32 in the same
  /// time; 0 without that instruction.
  double bf16DotRate = 0;
  bool usesBf16Dot() const { return bf16DotRate > 1; }
  MatrixUnitKind matrixUnit = MatrixUnitKind::None;
  MachineModel machine;
  int64_t reduction() const { return 4 * width; } ///< lanes of a reduction: four accumulators
  /// Of elementwise work: four chains side by side hide the latency of a function's polynomials.
  int64_t elementwise() const { return 4 * width; }
};

/// Units of the kernel and what one costs.
struct UnitPlan {
  int64_t units = 1;
  std::optional<unsigned> blockDim; ///< along which vectors and units lie, if any
  int64_t blockLength = 0;          ///< its elements in a unit
};
UnitPlan planUnits(const LoopNest& nest, const VectorShape& shape);

/// Emits `void name(ptr operands, ptr scalars, i64 begin, i64 end)` at the builder's insertion
/// point (a module). Fails with a diagnostic on the op when its intermediate results do not fit on
/// the stack.
mlir::FailureOr<mlir::func::FuncOp> emitFusedKernel(mlir::OpBuilder& builder, kernel::FusedOp op,
                                                    llvm::StringRef name, const VectorShape& shape);

/// The function with KernelFunction's signature and an empty body.
mlir::func::FuncOp createKernelFunction(mlir::OpBuilder& builder, mlir::Location loc,
                                        llvm::StringRef name);
/// The `count` addresses that the function's first argument points to.
llvm::SmallVector<mlir::Value> loadOperands(mlir::OpBuilder& builder, mlir::Location loc,
                                            mlir::func::FuncOp function, unsigned count);

} // namespace titan::codegen
