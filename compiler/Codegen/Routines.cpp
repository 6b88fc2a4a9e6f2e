#include "compiler/Codegen/Routines.h"

#include "compiler/Support/KernelKey.h"
#include "dialects/Kernel/AttentionRoutine.h"

#include "llvm/Support/raw_ostream.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen {

/// `routine` and the types of what the call reads and writes.
static std::string keyOf(kernel::CallOp call, Attribute routine) {
  KeyBuilder key;
  key.add(routine);
  key.addTypes(call.getIns().getTypes());
  key.addTypes(call.getOuts().getTypes());
  return key.str().str();
}

RoutineCode codeOfParameters(kernel::CallOp call) { return {keyOf(call, call.getRoutine()), {}}; }

SmallVector<unsigned> insThenOuts(kernel::CallOp call) {
  SmallVector<unsigned> numbers(call.getIns().size() + call.getOuts().size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Gemm toGemm(kernel::CallOp op) {
  kernel::GemmAttr gemm = op.getGemm();
  auto dtype = [](Value operand) {
    return cast<ShapedType>(operand.getType()).getElementType().isBF16() ? DType::BF16 : DType::F32;
  };
  Gemm call;
  call.m = gemm.getM();
  call.n = gemm.getN();
  call.k = gemm.getK();
  call.batch = gemm.getBatch();
  call.lda = gemm.getLda();
  call.ldb = gemm.getLdb();
  call.ldc = gemm.getLdc();
  call.batchStrideA = gemm.getStrideA();
  call.batchStrideB = gemm.getStrideB();
  call.batchStrideC = gemm.getStrideC();
  call.transposeA = gemm.getTransposeA();
  call.transposeB = gemm.getTransposeB();
  call.accumulate = gemm.getAccumulate();
  call.bias = gemm.getBias();
  call.relu = gemm.getRelu();
  call.a = dtype(op.getIns()[0]);
  call.b = dtype(op.getIns()[1]);
  call.c = dtype(op.getOuts()[0]);
  call.tileM = gemm.getTileM();
  call.tileN = gemm.getTileN();
  return call;
}

namespace {

std::string describeGemm(kernel::CallOp call) {
  Gemm gemm = toGemm(call);
  return fmt::format("gemm {}[{}, {}, {}]{}{}{}{}{}{}{}{}",
                     gemm.batch > 1 ? std::to_string(gemm.batch) + " x " : "", gemm.m, gemm.n,
                     gemm.k, call.getGemm().hasPatches() ? " of patches" : "",
                     gemm.transposeA ? " A^T" : "", gemm.transposeB ? " B^T" : "",
                     gemm.a == DType::BF16 ? " bf16" : "", gemm.accumulate ? " accumulate" : "",
                     gemm.bias ? " bias" : "", gemm.relu ? " relu" : "",
                     gemm.c == DType::BF16 ? " to bf16" : "");
}

/// Shapes of the operands play no part: the parameters count elements.
RoutineCode codeOfGemm(kernel::CallOp call) {
  KeyBuilder key;
  key.add(Attribute(call.getRoutine()));
  for (Value operand : call->getOperands())
    key.add(cast<ShapedType>(operand.getType()).getElementType());
  return {key.str().str(), {}};
}

/// A, B, C and then the bias.
SmallVector<unsigned> operandsOfGemm(kernel::CallOp call) {
  auto ins = static_cast<unsigned>(call.getIns().size());
  SmallVector<unsigned> numbers = {0, 1, ins};
  for (unsigned bias = 2; bias < ins; ++bias)
    numbers.push_back(bias);
  return numbers;
}

/// "attention backward [8, 6 / 2, 256, 256, 64] causal dropout": batch, query and key heads,
/// queries, keys, widths.
std::string describeAttention(kernel::CallOp call) {
  auto attention = cast<kernel::AttentionAttr>(call.getRoutine());
  auto both = [](int64_t a, int64_t b) {
    return a == b ? std::to_string(a) : fmt::format("{} / {}", a, b);
  };
  std::string element;
  llvm::raw_string_ostream(element) << attention.getElement();
  return fmt::format("attention {} [{}, {}, {}, {}, {}] {}{}{}{}",
                     attention.getGradient() ? "backward" : "forward", attention.getBatch(),
                     both(attention.getHeads(), attention.getKeyHeads()), attention.getQueries(),
                     attention.getKeys(), both(attention.getWidth(), attention.getValueWidth()),
                     element, attention.getCausal() ? " causal" : "",
                     attention.getMask() ? " mask" : "", attention.getDropout() ? " dropout" : "");
}

/// The stream of the dropout is what differs between the layers of a model.
RoutineCode codeOfAttention(kernel::CallOp call) {
  auto attention = cast<kernel::AttentionAttr>(call.getRoutine());
  RoutineCode code{keyOf(call, kernel::withoutStream(attention)), {}};
  if (kernel::AttentionDropoutAttr dropout = attention.getDropout())
    code.scalars.push_back(dropout.getStream());
  return code;
}

/// "5 of 10, 64": rows and entries, width. With inner or outer dimensions these too, in the order
/// of the table.
template <typename Routine> std::string describeRows(Routine routine, const std::string& rows) {
  if (routine.getOuter() == 1 && routine.getInner() == 1)
    return fmt::format("{}, {}", rows, routine.getWidth());
  return fmt::format("{}, {}, {}, {}", routine.getOuter(), rows, routine.getInner(),
                     routine.getWidth());
}

std::string describeEmbedding(kernel::CallOp call) {
  auto routine = cast<kernel::EmbeddingAttr>(call.getRoutine());
  const std::string rows = fmt::format("{} of {}", routine.getRows(), routine.getEntries());
  return fmt::format("embedding [{}]", describeRows(routine, rows));
}

std::string describeEmbeddingGrad(kernel::CallOp call) {
  auto routine = cast<kernel::EmbeddingGradAttr>(call.getRoutine());
  std::string rows = fmt::format("{} into {}", routine.getRows(), routine.getEntries());
  if (routine.getPadding() >= 0)
    rows += fmt::format(" but {}", routine.getPadding());
  return fmt::format("embedding_grad [{}]{}", describeRows(routine, rows),
                     routine.getAccumulate() ? " accumulate" : "");
}

/// "recurrence lstm backward [128, 32, 512] f32 reverse": steps, batch, width.
std::string describeRecurrence(kernel::CallOp call) {
  auto routine = cast<kernel::RecurrenceAttr>(call.getRoutine());
  std::string element;
  llvm::raw_string_ostream(element) << routine.getElement();
  return fmt::format("recurrence {} {} [{}, {}, {}] {}{}",
                     std::string(ir::stringifyRecurrentCell(routine.getCell())),
                     routine.getGradient() ? "backward" : "forward", routine.getSteps(),
                     routine.getBatch(), routine.getWidth(), element,
                     routine.getReverse() ? " reverse" : "");
}

/// "scatter add [4, 3 into 10, 2, 64]": outer, rows and entries, inner, width.
std::string describeScatter(kernel::CallOp call) {
  auto routine = cast<kernel::ScatterAttr>(call.getRoutine());
  return fmt::format("scatter {} [{}, {} into {}, {}, {}]",
                     std::string(ir::stringifyScatterKind(routine.getKind())), routine.getOuter(),
                     routine.getRows(), routine.getEntries(), routine.getInner(),
                     routine.getWidth());
}

/// "top_k [32, 5 of 1000] smallest"
std::string describeTopK(kernel::CallOp call) {
  auto routine = cast<kernel::TopKAttr>(call.getRoutine());
  return fmt::format("top_k [{}, {} of {}]{}", routine.getRows(), routine.getCount(),
                     routine.getLength(), routine.getSmallest() ? " smallest" : "");
}

} // namespace

const RoutineEmitter gemmRoutine = {
    describeGemm,
    [](kernel::CallOp call, const MachineModel& machine) { return costOf(toGemm(call), machine); },
    codeOfGemm, operandsOfGemm};
const RoutineEmitter attentionRoutine = {describeAttention, costOfAttention, codeOfAttention,
                                         insThenOuts};
const RoutineEmitter embeddingRoutine = {describeEmbedding, costOfEmbedding, codeOfParameters,
                                         insThenOuts};
const RoutineEmitter embeddingGradRoutine = {describeEmbeddingGrad, costOfEmbeddingGrad,
                                             codeOfParameters, insThenOuts};
const RoutineEmitter recurrenceRoutine = {describeRecurrence, costOfRecurrence, codeOfParameters,
                                          insThenOuts};
const RoutineEmitter scatterRoutine = {describeScatter, costOfScatter, codeOfParameters,
                                       insThenOuts};
const RoutineEmitter topKRoutine = {describeTopK, costOfTopK, codeOfParameters, insThenOuts};

} // namespace titan::codegen
