#include "compiler/Codegen/cpu/CpuRoutines.h"

#include "compiler/Codegen/Routines.h"
#include "compiler/Codegen/cpu/AttentionKernel.h"
#include "compiler/Codegen/cpu/EmbeddingKernel.h"
#include "compiler/Codegen/cpu/GemmKernel.h"
#include "compiler/Codegen/cpu/RecurrenceKernel.h"
#include "compiler/Codegen/cpu/ScatterKernel.h"
#include "compiler/Codegen/cpu/TopKKernel.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// An emitter that always succeeds, and needs no shape of vectors.
template <void emit(OpBuilder&, kernel::CallOp, StringRef)>
LogicalResult always(OpBuilder& builder, kernel::CallOp call, StringRef symbol,
                     const VectorShape&) {
  emit(builder, call, symbol);
  return success();
}

const CpuRoutine gemm = {gemmRoutine, [](OpBuilder& builder, kernel::CallOp call, StringRef symbol,
                                         const VectorShape& shape) {
                           emitGemmKernel(builder, call, symbol, shape);
                           return success();
                         }};
const CpuRoutine attention = {attentionRoutine, emitAttentionKernel};
const CpuRoutine embedding = {embeddingRoutine, always<emitEmbeddingKernel>};
const CpuRoutine embeddingGrad = {embeddingGradRoutine, always<emitEmbeddingGradKernel>};
const CpuRoutine recurrence = {recurrenceRoutine, emitRecurrenceKernel};
const CpuRoutine scatter = {scatterRoutine, always<emitScatterKernel>};
const CpuRoutine topK = {topKRoutine, always<emitTopKKernel>};

struct KernelRoutines : CpuRoutineTable {
  using CpuRoutineTable::CpuRoutineTable;

  const CpuRoutine* find(Attribute routine) const override {
    return llvm::TypeSwitch<Attribute, const CpuRoutine*>(routine)
        .Case([](kernel::GemmAttr) { return &gemm; })
        .Case([](kernel::AttentionAttr) { return &attention; })
        .Case([](kernel::EmbeddingAttr) { return &embedding; })
        .Case([](kernel::EmbeddingGradAttr) { return &embeddingGrad; })
        .Case([](kernel::RecurrenceAttr) { return &recurrence; })
        .Case([](kernel::ScatterAttr) { return &scatter; })
        .Case([](kernel::TopKAttr) { return &topK; })
        .Default(nullptr);
  }
};

} // namespace

void registerCpuRoutines(DialectRegistry& registry) {
  registry.addExtension(+[](MLIRContext*, kernel::KernelDialect* dialect) {
    dialect->addInterfaces<KernelRoutines>();
  });
}

} // namespace titan::codegen
