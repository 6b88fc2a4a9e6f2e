// What a product writes: its epilogue, and its elements as wide as alignment allows.
#pragma once

#include "compiler/Codegen/cuda/ThreadBuilder.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen::cuda {

class GemmResult {
public:
  /// Of product number `batch` of `call`, whose operands are `operands`.
  GemmResult(ThreadBuilder& builder, kernel::CallOp call, mlir::ValueRange operands,
             mlir::Value batch);

  /// Writes `sums`, a vector of f32: so many neighbours of a row of C, which begin at a multiple of
  /// their number. What lies outside of C is left out. Before rounding what C held is added, then
  /// the bias; relu comes last.
  void write(mlir::Value row, mlir::Value column, mlir::Value sums);

private:
  void writeRun(mlir::Value row, mlir::Value column, mlir::Value sums);

  ThreadBuilder& b;
  kernel::CallOp call;
  kernel::GemmAttr gemm;
  mlir::Value c, bias, batch;
  mlir::Type element;
};

} // namespace titan::codegen::cuda
