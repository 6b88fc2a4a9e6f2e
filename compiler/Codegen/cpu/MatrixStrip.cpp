#include "compiler/Codegen/cpu/MatrixStrip.h"

#include "compiler/Codegen/cpu/MatrixUnit.h"

using namespace mlir;

namespace titan::codegen {
namespace {

constexpr int64_t tilesPerSide = 2;

class StripEmitter {
public:
  StripEmitter(KernelBuilder& builder, const MatrixStripKind& kind,
               const MatrixStripArguments& arguments)
      : g(builder), kind(kind), arg(arguments), unit(MatrixUnit::create(builder, kind.unit)) {
    block.rows = matrixBlock;
    block.width = g.width;
    block.vectors = matrixBlock / g.width;
    scratch = g.stack(matrixBlock * matrixBlock, g.f32);
    tileRow = i64(MatrixTile::rowBytes);
  }

  void emit() {
    Value blockOfB = g.mul(arg.panelSteps, packedStep);
    Value hasAllRows = g.compare(arith::CmpIPredicate::eq, arg.rows, g.index(matrixBlock));
    g.loop(g.index(0), arg.columns, matrixBlock, [&](Value column) {
      Value width = g.fewer(g.index(matrixBlock), g.sub(arg.columns, column));
      Value isWide = g.compare(arith::CmpIPredicate::eq, width, g.index(matrixBlock));
      Value inPlace =
          kind.hasPaddedSums ? g.flag(true) : g.create<arith::AndIOp>(hasAllRows, isWide);
      emitBlock(column, width, inPlace,
                g.at(arg.b, g.mul(g.divide(column, matrixBlock), blockOfB), g.i16));
    });
  }

private:
  Value i64(int64_t value) {
    return g.create<arith::ConstantOp>(g.builder.getI64IntegerAttr(value));
  }
  Value isNot(Value flag) { return g.create<arith::XOrIOp>(flag, g.flag(true)); }
  Value both(Value a, Value b) { return g.create<arith::AndIOp>(a, b); }

  void emitBlock(Value column, Value width, Value inPlace, Value b) {
    Value sums = g.at(arg.sums, column, g.f32);
    Value sumsBytes = g.toI64(g.mul(arg.sumsRow, 4)), scratchBytes = i64(matrixBlock * 4);
    if (!kind.hasPaddedSums)
      g.when(both(arg.continues, isNot(inPlace)), [&] { fetch(sums, width); });
    Value from = g.select(inPlace, sums, scratch);
    Value fromBytes = g.select(inPlace, sumsBytes, scratchBytes);

    SmallVector<Value> tiles;
    for (int64_t i = 0; i < tilesPerSide * tilesPerSide; ++i)
      tiles.push_back(unit->zero(i));
    tiles = emitIf(g.builder, g.loc, arg.continues, tiles, [&] {
      SmallVector<Value> loaded;
      for (int64_t i = 0; i < tilesPerSide * tilesPerSide; ++i)
        loaded.push_back(unit->load(i, tileOf(from, fromBytes, i), fromBytes));
      return loaded;
    });
    tiles = emitLoop(g.builder, g.loc, g.index(0), arg.steps, 1, tiles,
                     [&](Value step, ValueRange carried) { return multiply(step, b, carried); });

    // Complete sums go through the scratch, where an epilogue waits for them.
    Value finishes = kind.epilogue.any() ? arg.isLast : g.flag(false);
    Value toSums = both(inPlace, isNot(finishes));
    Value to = g.select(toSums, sums, scratch);
    Value toBytes = g.select(toSums, sumsBytes, scratchBytes);
    for (auto [i, tile] : llvm::enumerate(tiles))
      unit->store(tile, tileOf(to, toBytes, i), toBytes);
    if (kind.epilogue.any())
      g.when(finishes, [&] { finish(kind.epilogue, arg.c, arg.cRow, column, width); });
    if (!kind.hasPaddedSums)
      g.when(both(isNot(inPlace), isNot(finishes)),
             [&] { finish({}, arg.sums, arg.sumsRow, column, width); });
  }

  /// Tile i of a block of sums: its upper two, then its lower two.
  Value tileOf(Value block, Value rowBytes, int64_t i) {
    Value down = g.mul(g.toIndex(rowBytes), i / tilesPerSide * MatrixTile::rows);
    return g.at(block, g.add(down, i % tilesPerSide * MatrixTile::rowBytes), g.i8);
  }

  /// One step along k: two tiles of A, two of B, four products.
  SmallVector<Value> multiply(Value step, Value b, ValueRange sums) {
    Value offset = g.mul(step, packedStep * 2);
    auto load = [&](Value panel, int64_t part, int64_t number) {
      Value tile = g.at(g.at(panel, offset, g.i8), part * MatrixTile::bytes, g.i8);
      return unit->load(number, tile, tileRow);
    };
    Value left[] = {load(arg.a, 0, 4), load(arg.a, 1, 5)};
    Value right[] = {load(b, 0, 6), load(b, 1, 7)};
    SmallVector<Value> next;
    for (int64_t i = 0; i < tilesPerSide * tilesPerSide; ++i)
      next.push_back(unit->multiplyAdd(sums[i], left[i / tilesPerSide], right[i % tilesPerSide]));
    return next;
  }

  /// What there is of a block of sums comes into the scratch.
  void fetch(Value sums, Value width) {
    g.loop(g.index(0), arg.rows, 1, [&](Value row) {
      for (int64_t v = 0; v < block.vectors; ++v) {
        Value mask = g.maskBelow(width, g.width, v * g.width);
        Value from = g.at(sums, g.add(g.mul(row, arg.sumsRow), v * g.width), g.f32);
        Value to = g.at(scratch, g.add(g.mul(row, matrixBlock), v * g.width), g.f32);
        g.store(g.loadMasked(g.vectorOf(g.f32), from, mask), to);
      }
    });
  }

  void finish(const GemmEpilogue& epilogue, Value c, Value cRow, Value column, Value width) {
    Type element = epilogue.toBf16 ? g.i16 : g.f32;
    emitEpilogue(g,
                 {.sums = scratch,
                  .c = g.at(c, column, element),
                  .cRow = cRow,
                  .bias = epilogue.bias ? g.at(arg.bias, column, element) : arg.bias,
                  .rows = arg.rows,
                  .columns = width},
                 block, epilogue);
  }

  KernelBuilder& g;
  MatrixStripKind kind;
  MatrixStripArguments arg;
  std::unique_ptr<MatrixUnit> unit;
  GemmTile block;
  Value scratch, tileRow;
};

} // namespace

func::FuncOp getMatrixStrip(KernelBuilder& g, const MatrixStripKind& kind) {
  Type p = g.pointer, n = g.indexType, flag = g.builder.getI1Type();
  std::string name = "matrix_strip" + kind.epilogue.suffix();
  name += kind.hasPaddedSums ? "_sums" : "";
  return g.getFunction(name, {p, p, p, n, p, n, p, n, n, n, n, flag, flag}, [&](Block& block) {
    StripEmitter(g, kind, argumentsOf<MatrixStripArguments>(block)).emit();
  });
}

} // namespace titan::codegen
