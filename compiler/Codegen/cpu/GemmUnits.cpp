#include "compiler/Codegen/cpu/GemmUnits.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace titan::codegen {

void forEachRectangle(KernelBuilder& g, kernel::GemmAttr gemm, Value begin, Value end,
                      function_ref<void(Value, GemmRange, GemmRange)> body) {
  int64_t tilesM = llvm::divideCeil(gemm.getM(), gemm.getTileM());
  int64_t tilesN = llvm::divideCeil(gemm.getN(), gemm.getTileN());
  bool alongM = gemm.getM() <= gemm.getN();
  int64_t perLine = alongM ? tilesM : tilesN, perMatrix = tilesM * tilesN;
  /// The elements of `tiles`, of which the last may be cut by the extent.
  auto elements = [&](GemmRange tiles, int64_t tile, int64_t extent) -> GemmRange {
    Value first = g.mul(tiles.first, tile);
    return {first, g.fewer(g.mul(tiles.count, tile), g.sub(g.index(extent), first))};
  };
  scf::WhileOp::create(
      g.builder, g.loc, g.indexType, begin,
      [&](OpBuilder&, Location, ValueRange unit) {
        scf::ConditionOp::create(g.builder, g.loc, g.less(unit[0], end), unit);
      },
      [&](OpBuilder&, Location, ValueRange carried) {
        Value unit = carried[0], matrix = g.divide(unit, perMatrix);
        Value place = g.remainder(unit, perMatrix);
        Value line = g.divide(place, perLine), inLine = g.remainder(place, perLine);
        Value left = g.fewer(g.sub(end, unit), g.sub(g.index(perMatrix), place));
        Value startsLine = g.compare(arith::CmpIPredicate::eq, inLine, g.index(0));
        Value coversLine = g.compare(arith::CmpIPredicate::uge, left, g.index(perLine));
        Value isWhole = g.create<arith::AndIOp>(startsLine, coversLine);
        auto choose = [&](Value whole, Value part) { return g.select(isWhole, whole, part); };
        Value lines = choose(g.divide(left, perLine), g.index(1));
        Value tiles = choose(g.index(perLine), g.fewer(left, g.sub(g.index(perLine), inLine)));
        GemmRange along = {inLine, tiles}, across = {line, lines};
        body(matrix, elements(alongM ? along : across, gemm.getTileM(), gemm.getM()),
             elements(alongM ? across : along, gemm.getTileN(), gemm.getN()));
        scf::YieldOp::create(g.builder, g.loc, g.add(unit, g.mul(lines, tiles)));
      });
}

void forEachPiece(KernelBuilder& g, GemmRange range, int64_t most, int64_t step,
                  function_ref<void(GemmRange)> body) {
  Value pieces = g.divide(g.add(range.count, most - 1), most);
  Value steps = g.divide(g.add(range.count, step - 1), step);
  Value extent = g.mul(g.divideCeil(steps, pieces), step);
  Value end = g.add(range.first, range.count);
  g.loop(g.index(0), pieces, 1, [&](Value piece) {
    Value first = g.add(range.first, g.mul(piece, extent));
    // Pieces in whole steps may cover the range before the last one.
    Value begin = g.fewer(first, end);
    body({begin, g.fewer(extent, g.sub(end, begin))});
  });
}

} // namespace titan::codegen
