// How the interpreter's meaning of an op is attached to it. One file a family in ops/, each with
// one function that attaches its ops.
#pragma once

#include "compiler/Interpreter/Frame.h"
#include "dialects/Titan/Titan.h"

namespace titan::interpreter {

/// InterpretableOpInterface of `OpTy` by `function(OpTy, Frame&) -> LogicalResult`.
template <typename OpTy, auto function>
struct Model : ir::InterpretableOpInterface::ExternalModel<Model<OpTy, function>, OpTy> {
  llvm::LogicalResult interpret(mlir::Operation* op, Frame& frame) const {
    return function(llvm::cast<OpTy>(op), frame);
  }
};

template <typename OpTy, auto function> void attach(mlir::MLIRContext* context) {
  OpTy::template attachInterface<Model<OpTy, function>>(*context);
}

/// The elements of a dense constant; an error on `op` for any other.
llvm::FailureOr<Tensor> constantTensor(mlir::Operation* op, mlir::ElementsAttr value);

/// Elementwise meaning by a function of one element: f64 for floats, i64 for all others.
template <typename OpTy, auto function> void attachUnary(mlir::MLIRContext* context) {
  attach<OpTy, [](OpTy op, Frame& frame) -> llvm::LogicalResult {
    Tensor result = frame.get(op->getOperand(0));
    if (result.isFloat())
      for (double& x : result.mutableFloats())
        x = function(x);
    else if constexpr (std::is_invocable_r_v<int64_t, decltype(function), int64_t> &&
                       std::is_same_v<decltype(function(int64_t(0))), int64_t>)
      for (int64_t& x : result.mutableIntegers())
        x = function(x);
    frame.set(op->getResult(0), std::move(result));
    return llvm::success();
  }>(context);
}

/// Likewise of two elements.
template <typename OpTy, auto function> void attachBinary(mlir::MLIRContext* context) {
  attach<OpTy, [](OpTy op, Frame& frame) -> llvm::LogicalResult {
    Tensor result = frame.get(op->getOperand(0));
    const Tensor& other = frame.get(op->getOperand(1));
    if (result.isFloat())
      for (auto [x, y] : llvm::zip_equal(result.mutableFloats(), other.floats()))
        x = function(x, y);
    else if constexpr (std::is_same_v<decltype(function(int64_t(0), int64_t(0))), int64_t>)
      for (auto [x, y] : llvm::zip_equal(result.mutableIntegers(), other.integers()))
        x = function(x, y);
    frame.set(op->getResult(0), std::move(result));
    return llvm::success();
  }>(context);
}

void attachElementwise(mlir::MLIRContext* context);
void attachShape(mlir::MLIRContext* context);
void attachContraction(mlir::MLIRContext* context);
void attachConvolution(mlir::MLIRContext* context);
void attachPool(mlir::MLIRContext* context);
void attachReduction(mlir::MLIRContext* context);
void attachExactSum(mlir::MLIRContext* context);
void attachNormalization(mlir::MLIRContext* context);
void attachIndexing(mlir::MLIRContext* context);
void attachScatter(mlir::MLIRContext* context);
void attachAttention(mlir::MLIRContext* context);
void attachRandom(mlir::MLIRContext* context);
void attachRecurrence(mlir::MLIRContext* context);
void attachLoss(mlir::MLIRContext* context);
void attachOptimizer(mlir::MLIRContext* context);
void attachAccum(mlir::MLIRContext* context);
void attachKernel(mlir::MLIRContext* context);
void attachArith(mlir::MLIRContext* context);
void attachMath(mlir::MLIRContext* context);
void attachDist(mlir::MLIRContext* context);

} // namespace titan::interpreter
