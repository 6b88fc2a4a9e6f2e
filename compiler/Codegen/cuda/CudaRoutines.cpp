#include "compiler/Codegen/cuda/CudaRoutines.h"

#include "compiler/Codegen/cuda/AttentionKernel.h"
#include "compiler/Codegen/cuda/EmbeddingKernel.h"
#include "compiler/Codegen/cuda/GemmKernel.h"
#include "compiler/Codegen/cuda/RecurrenceKernel.h"
#include "compiler/Codegen/cuda/ScatterKernel.h"
#include "compiler/Codegen/cuda/TopKKernel.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

struct CudaRoutine {
  const RoutineEmitter* routine;
  LogicalResult (*emit)(KernelModule& kernels, kernel::CallOp call, StringRef symbol);
};

constexpr CudaRoutine gemm = {&gemmRoutine, emitGemmKernel};
constexpr CudaRoutine attention = {&attentionRoutine, emitAttentionKernel};
constexpr CudaRoutine embedding = {&embeddingRoutine, emitEmbeddingKernel};
constexpr CudaRoutine embeddingGrad = {&embeddingGradRoutine, emitEmbeddingGradKernels};
constexpr CudaRoutine recurrence = {&recurrenceRoutine, emitRecurrenceKernel};
constexpr CudaRoutine scatter = {&scatterRoutine, emitScatterKernel};
constexpr CudaRoutine topK = {&topKRoutine, emitTopKKernel};

const CudaRoutine* find(Attribute routine) {
  return llvm::TypeSwitch<Attribute, const CudaRoutine*>(routine)
      .Case([](kernel::GemmAttr) { return &gemm; })
      .Case([](kernel::AttentionAttr) { return &attention; })
      .Case([](kernel::EmbeddingAttr) { return &embedding; })
      .Case([](kernel::EmbeddingGradAttr) { return &embeddingGrad; })
      .Case([](kernel::RecurrenceAttr) { return &recurrence; })
      .Case([](kernel::ScatterAttr) { return &scatter; })
      .Case([](kernel::TopKAttr) { return &topK; })
      .Default(nullptr);
}

} // namespace

const RoutineEmitter* findRoutine(Attribute routine) {
  const CudaRoutine* found = find(routine);
  return found ? found->routine : nullptr;
}

LogicalResult emitRoutineKernel(KernelModule& kernels, kernel::CallOp call, StringRef symbol) {
  return find(call.getRoutine())->emit(kernels, call, symbol);
}

} // namespace titan::codegen::cuda
