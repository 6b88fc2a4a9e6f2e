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

const CpuRoutine gemm = {gemmRoutine, [](OpBuilder& builder, kernel::CallOp call, StringRef symbol,
                                         const VectorShape& shape) {
                           emitGemmKernel(builder, call, symbol, shape);
                           return success();
                         }};
const CpuRoutine attention = {attentionRoutine, [](OpBuilder& builder, kernel::CallOp call,
                                                   StringRef symbol, const VectorShape& shape) {
                                return emitAttentionKernel(builder, call, symbol, shape);
                              }};
const CpuRoutine embedding = {embeddingRoutine, [](OpBuilder& builder, kernel::CallOp call,
                                                   StringRef symbol, const VectorShape&) {
                                emitEmbeddingKernel(builder, call, symbol);
                                return success();
                              }};
const CpuRoutine embeddingGrad = {embeddingGradRoutine, [](OpBuilder& builder, kernel::CallOp call,
                                                           StringRef symbol, const VectorShape&) {
                                    emitEmbeddingGradKernel(builder, call, symbol);
                                    return success();
                                  }};

const CpuRoutine scatter = {scatterRoutine, [](OpBuilder& builder, kernel::CallOp call,
                                               StringRef symbol, const VectorShape&) {
                              emitScatterKernel(builder, call, symbol);
                              return success();
                            }};
const CpuRoutine topK = {
    topKRoutine, [](OpBuilder& builder, kernel::CallOp call, StringRef symbol, const VectorShape&) {
      emitTopKKernel(builder, call, symbol);
      return success();
    }};
const CpuRoutine recurrence = {recurrenceRoutine, emitRecurrenceKernel};

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
