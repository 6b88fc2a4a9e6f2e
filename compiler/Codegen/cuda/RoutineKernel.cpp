#include "compiler/Codegen/cuda/RoutineKernel.h"

#include "compiler/Codegen/cuda/EmbeddingKernel.h"
#include "compiler/Codegen/cuda/GemmKernel.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan::codegen::cuda {

LogicalResult emitRoutine(KernelModule& kernels, kernel::CallOp call, StringRef symbol) {
  return llvm::TypeSwitch<Attribute, LogicalResult>(call.getRoutine())
      .Case([&](kernel::GemmAttr) { return emitGemmKernel(kernels, call, symbol); })
      .Case([&](kernel::EmbeddingAttr) { return emitEmbeddingKernel(kernels, call, symbol); })
      .Case([&](kernel::EmbeddingGradAttr) {
        return emitEmbeddingGradKernels(kernels, call, symbol);
      });
}

} // namespace titan::codegen::cuda
