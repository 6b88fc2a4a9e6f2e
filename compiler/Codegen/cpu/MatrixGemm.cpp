#include "compiler/Codegen/cpu/MatrixGemm.h"

#include "compiler/Codegen/cpu/GemmUnits.h"
#include "compiler/Codegen/cpu/MatrixStrip.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// Sums that C cannot hold, where B is cut along k: 2 MiB of the stack.
constexpr int64_t mostSums = 512 * 1024;

Type elementOf(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }

class MatrixEmitter {
public:
  MatrixEmitter(OpBuilder& builder, kernel::CallOp call, const VectorShape& shape,
                func::FuncOp function)
      : g(builder, call.getLoc(), shape.width), gemm(call.getGemm()), function(function),
        elementB(elementOf(call.getIns()[1])), resultElement(elementOf(call.getOuts()[0])) {
    epilogue = {gemm.getBias(), gemm.getRelu(), resultElement.isBF16()};
    // Each 32 rows of A are packed once for these columns, which costs more where rows have to be
    // transposed.
    const MachineModel& machine = shape.machine;
    int64_t most = gemm.getTransposeA() ? machine.matrixColumnsTransposed : machine.matrixColumns;
    columns = llvm::alignTo(std::min(gemm.getN(), most), matrixBlock);
    depth = equalPart(gemm.getK(), machine.matrixBlockElements / columns);
    panel = equalPart(depth, machine.matrixPanelDepth);
    packA = getMatrixPack(g, {.isRight = false, .alongK = !gemm.getTransposeA()});
    packB = getMatrixPack(
        g, {.isRight = true, .alongK = gemm.getTransposeB(), .rounds = elementB.isF32()});
    strip = getMatrixStrip(
        g, {.epilogue = epilogue, .hasPaddedSums = keepsSumsApart(), .unit = shape.matrixUnit});
  }

  void emit() {
    operands = loadOperands(g.builder, g.loc, function, gemm.getBias() ? 4 : 3);
    panelA = g.stack(matrixBlock * depth, g.i16);
    panelB = g.stack(columns * depth, g.i16);
    if (keepsSumsApart())
      sums = g.stack(rowsOfSums() * columns, g.f32);
    forEachRectangle(g, gemm, g.toIndex(function.getArgument(2)),
                     g.toIndex(function.getArgument(3)),
                     [&](Value matrix, GemmRange rows, GemmRange columns) {
                       emitRectangle(matrix, rows, columns);
                     });
  }

private:
  /// The largest of the fewest equal parts of at most `most` elements, in whole steps; one step
  /// where a printed machine model leaves no room for it.
  static int64_t equalPart(int64_t extent, int64_t most) {
    const int64_t parts = llvm::divideCeil(extent, std::max<int64_t>(most, matrixStep));
    return llvm::alignTo(llvm::divideCeil(extent, parts), matrixStep);
  }
  bool cutsB() const { return depth < gemm.getK(); }
  /// bf16 cannot hold the sums between two panels.
  bool keepsSumsApart() const { return epilogue.toBf16 && panel < gemm.getK(); }
  /// One strip, or all of a block where B is cut along k.
  int64_t rowsOfSums() const {
    return cutsB() ? std::max(mostSums / columns / matrixBlock, int64_t{1}) * matrixBlock
                   : matrixBlock;
  }

  void emitRectangle(Value matrix, GemmRange rows, GemmRange allColumns) {
    Value a = g.at(operands[0], g.mul(matrix, gemm.getStrideA()), g.i16);
    Value b = g.at(operands[1], g.mul(matrix, gemm.getStrideB()), elementB);
    Value c = g.at(operands[2], g.mul(matrix, gemm.getStrideC()), resultElement);
    int64_t mostRows = keepsSumsApart() && cutsB() ? rowsOfSums() : gemm.getM();
    forEachPiece(g, allColumns, columns, matrixBlock, [&](GemmRange j) {
      forEachPiece(g, rows, mostRows, matrixBlock, [&](GemmRange i) {
        forParts(g.index(gemm.getK()), depth, [&](GemmRange k) { emitBlock(a, b, c, i, j, k); });
      });
    });
  }

  /// for each `most` elements of `extent`, from the first one on.
  void forParts(Value extent, int64_t most, function_ref<void(GemmRange)> body) {
    g.loop(g.index(0), extent, most,
           [&](Value first) { body({first, g.fewer(g.index(most), g.sub(extent, first))}); });
  }

  void emitBlock(Value a, Value b, Value c, GemmRange i, GemmRange j, GemmRange k) {
    int64_t lda = gemm.getLda(), ldb = gemm.getLdb(), ldc = gemm.getLdc();
    Value cornerB = gemm.getTransposeB() ? g.add(g.mul(j.first, ldb), k.first)
                                         : g.add(g.mul(k.first, ldb), j.first);
    callShared(g, packB,
               MatrixPackArguments{.from = g.at(b, cornerB, elementB),
                                   .leading = g.index(ldb),
                                   .count = j.count,
                                   .depth = k.count,
                                   .panel = panelB});
    forParts(i.count, matrixBlock, [&](GemmRange inBlock) {
      Value row = g.add(i.first, inBlock.first);
      Value cornerA =
          gemm.getTransposeA() ? g.add(g.mul(k.first, lda), row) : g.add(g.mul(row, lda), k.first);
      callShared(g, packA,
                 MatrixPackArguments{.from = g.at(a, cornerA, g.i16),
                                     .leading = g.index(lda),
                                     .count = inBlock.count,
                                     .depth = k.count,
                                     .panel = panelA});
      Value corner = g.at(c, g.add(g.mul(row, ldc), j.first), resultElement);
      Value bias = gemm.getBias() ? g.at(operands[3], j.first, resultElement) : operands[2];
      Value rowOfSums = cutsB() ? inBlock.first : g.index(0);
      forParts(k.count, panel, [&](GemmRange inPart) {
        Value first = g.add(k.first, inPart.first);
        Value steps = g.divide(g.add(k.count, matrixStep - 1), matrixStep);
        Value step = g.divide(inPart.first, matrixStep);
        bool apart = keepsSumsApart();
        callShared(g, strip,
                   MatrixStripArguments{
                       .a = g.at(panelA, g.mul(step, packedStep), g.i16),
                       .b = g.at(panelB, g.mul(step, packedStep), g.i16),
                       .sums = apart ? g.at(sums, g.mul(rowOfSums, columns), g.f32) : corner,
                       .sumsRow = g.index(apart ? columns : ldc),
                       .c = corner,
                       .cRow = g.index(ldc),
                       .bias = bias,
                       .steps = g.divide(g.add(inPart.count, matrixStep - 1), matrixStep),
                       .panelSteps = steps,
                       .rows = inBlock.count,
                       .columns = j.count,
                       .continues = gemm.getAccumulate()
                                        ? g.flag(true)
                                        : g.compare(arith::CmpIPredicate::ne, first, g.index(0)),
                       .isLast = g.compare(arith::CmpIPredicate::eq, g.add(first, inPart.count),
                                           g.index(gemm.getK()))});
      });
    });
  }

  KernelBuilder g;
  kernel::GemmAttr gemm;
  func::FuncOp function, packA, packB, strip;
  Type elementB, resultElement;
  GemmEpilogue epilogue;
  int64_t columns, depth; ///< of a packed block of B
  int64_t panel;          ///< elements along k of one pass over C
  SmallVector<Value> operands;
  Value panelA, panelB, sums;
};

} // namespace

bool usesMatrixUnit(kernel::CallOp call, const VectorShape& shape) {
  kernel::GemmAttr gemm = call.getGemm();
  int64_t m = gemm.getM(), n = gemm.getN(), k = gemm.getK();
  return shape.matrixUnit != MatrixUnitKind::None && !gemm.hasPatches() &&
         elementOf(call.getIns()[0]).isBF16() &&
         std::min({m, n, k}) >= shape.machine.matrixExtent && m * n >= shape.machine.matrixSums &&
         m * n * k >= shape.machine.matrixMultiplyAdds;
}

void emitMatrixGemm(OpBuilder& builder, kernel::CallOp call, const VectorShape& shape,
                    func::FuncOp function) {
  MatrixEmitter(builder, call, shape, function).emit();
}

} // namespace titan::codegen
