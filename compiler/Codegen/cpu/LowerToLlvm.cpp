#include "compiler/Codegen/cpu/LowerToLlvm.h"

#include "compiler/Codegen/kernel/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace titan::codegen {

void addLowerToLlvmPasses(OpPassManager& passes, bool hasBf16) {
  passes.addPass(createExpandMath());
  // Equal addresses of neighbouring operands, and constants of the polynomials.
  passes.addPass(createCSEPass());
  // What has neither polynomial nor intrinsic is called in libm, element by element: with vector
  // and arith ops, which the passes below convert.
  passes.addPass(createConvertMathToLLVMPass({.approximateLog1p = false}));
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  // Rounding division of integers has no instruction.
  passes.addPass(arith::createArithExpandOpsPass({.includeBf16 = !hasBf16}));
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
}

} // namespace titan::codegen
