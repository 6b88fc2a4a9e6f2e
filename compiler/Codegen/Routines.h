// The kernel dialect's routines as every target sees them: what they are called, what they cost,
// and what decides their code. A target's table adds how they are emitted.
#pragma once

#include "compiler/Codegen/Target.h"

namespace titan::codegen {

extern const RoutineEmitter gemmRoutine, attentionRoutine, embeddingRoutine, embeddingGradRoutine,
    recurrenceRoutine, scatterRoutine, topKRoutine;

/// For a routine without peculiarities: the parameters and the operands' types decide the code, and
/// operands are ins, then outs.
RoutineCode codeOfParameters(kernel::CallOp call);
llvm::SmallVector<unsigned> insThenOuts(kernel::CallOp call);

/// The matrix product that `call` computes, as the job's table lists it.
Gemm toGemm(kernel::CallOp call);

} // namespace titan::codegen
