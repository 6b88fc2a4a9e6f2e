#include "compiler/Codegen/cpu/GemmKernel.h"

#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/GatherPatches.h"
#include "compiler/Codegen/cpu/GemmPack.h"
#include "compiler/Codegen/cpu/GemmUnits.h"
#include "compiler/Codegen/cpu/MatrixGemm.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace titan::codegen {
namespace {

int64_t byteSize(Type element) { return element.getIntOrFloatBitWidth() / 8; }
Type elementOf(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }

/// The loops of one product around the shared functions.
class GemmEmitter {
public:
  GemmEmitter(OpBuilder& builder, kernel::CallOp call, const VectorShape& shape,
              func::FuncOp function)
      : g(builder, call.getLoc(), shape.width), gemm(call.getGemm()), machine(shape.machine),
        function(function), elementA(elementOf(call.getIns()[0])),
        elementB(elementOf(call.getIns()[1])), resultElement(elementOf(call.getOuts()[0])) {
    GemmLane lane = !elementA.isBF16()    ? GemmLane::F32
                    : shape.usesBf16Dot() ? GemmLane::Bf16Pair
                                          : GemmLane::WidenedBf16;
    tile = gemmTile(shape, lane, std::min(gemm.getTileM(), gemm.getM()),
                    std::min(gemm.getTileN(), gemm.getN()));
    layout = panelOfA(tile, gemm.getTransposeA());
    GemmTile row = tile;
    row.rows = 1;
    packA = getPackA(g, tile, layout, gemm.getTransposeA());
    const bool roundsB = elementA.isBF16() && elementB.isF32();
    packB = getPackB(g, tile, gemm.getTransposeB(), roundsB);
    if (gemm.getPatchesB())
      packLines = getPackLines(g, tile, roundsB);
    fullTile = getTileFunction(g, tile, layout);
    rowTile = getTileFunction(g, row, layout);
    epilogue = {gemm.getBias(), gemm.getRelu(), resultElement.isBF16()};
    if (epilogue.any())
      finish = getEpilogueFunction(g, tile, epilogue);

    // Equal panels, of whole lines.
    constexpr int64_t line = 16;
    int64_t groups = llvm::divideCeil(gemm.getK(), groupOf(lane));
    int64_t panels = llvm::divideCeil(groups, gemmDepth);
    depth = llvm::alignTo(llvm::divideCeil(groups, panels), line) * groupOf(lane);
  }

  void emit() {
    operands = loadOperands(g.builder, g.loc, function, gemm.getBias() ? 4 : 3);
    int64_t rows = llvm::alignTo(std::min(gemm.getM(), rowsOfPanel()), tile.rows);
    panelA = reserve(rows / tile.rows * layout.block);
    panelB = reserve(tile.depth() * tile.columns());
    if (epilogue.any())
      finished = reserve(tile.rows * tile.columns());
    if (keepsSumsApart())
      sums = reserve(rows * leadingOfSums());
    if (gemm.getPatchesA() && !packsInPlace())
      lineOfA = g.stack(depth, elementA);
    if (gemm.getPatchesB()) {
      placesOfB = g.stack(depth, g.builder.getI64Type());
      linesOfB = g.stack(depth * tile.columns(), elementB);
    }
    forEachRectangle(
        g, gemm, g.toIndex(function.getArgument(2)), g.toIndex(function.getArgument(3)),
        [&](Value matrix, Range rows, Range columns) { emitRectangle(matrix, rows, columns); });
  }

private:
  using Range = GemmRange;

  /// `lanes` f32 on the stack.
  Value reserve(int64_t lanes) {
    return g.create<LLVM::AllocaOp>(g.pointer, g.f32, g.toI64(g.index(lanes)), /*alignment=*/64);
  }
  /// Is a packed row of A what the row is in memory?
  bool packsInPlace() const { return tile.lane != GemmLane::WidenedBf16; }
  int64_t rowsOfPanel() const { return machine.gemmRows * gemmDepth / tile.depth(); }
  /// bf16 cannot hold the sums between two panels.
  bool keepsSumsApart() const { return epilogue.toBf16 && depth < gemm.getK(); }
  int64_t mostColumns() const {
    return keepsSumsApart() ? machine.gemmSumColumns : machine.gemmColumns;
  }
  int64_t leadingOfSums() const {
    return llvm::alignTo(std::min(gemm.getN(), machine.gemmSumColumns), tile.columns());
  }

  /// Blocks of C, each with all of its panels along k, so that its sums stay in cache.
  void emitRectangle(Value matrix, Range rows, Range columns) {
    Value a = g.at(operands[0], g.mul(matrix, gemm.getStrideA()), elementA);
    Value b = g.at(operands[1], g.mul(matrix, gemm.getStrideB()), elementB);
    Value c = g.at(operands[2], g.mul(matrix, gemm.getStrideC()), resultElement);
    forEachPiece(g, rows, rowsOfPanel(), tile.rows, [&](Range i) {
      forEachPiece(g, columns, mostColumns(), tile.columns(), [&](Range j) {
        Value aBlock =
            gemm.getPatchesA()
                ? a
                : g.at(a, gemm.getTransposeA() ? i.first : g.mul(i.first, gemm.getLda()), elementA);
        Value bBlock =
            gemm.getPatchesB()
                ? b
                : g.at(b, gemm.getTransposeB() ? g.mul(j.first, gemm.getLdb()) : j.first, elementB);
        Value cBlock = g.at(c, g.add(g.mul(i.first, gemm.getLdc()), j.first), resultElement);
        Value bias = gemm.getBias() ? g.at(operands[3], j.first, resultElement) : operands[2];
        // A loop even over one panel, which LLVM takes apart.
        auto panel = [&](OpBuilder&, Location, Value k, ValueRange) {
          Value elements = g.fewer(g.index(depth), g.sub(g.index(gemm.getK()), k));
          emitBlock(aBlock, bBlock, cBlock, bias, {k, elements}, i, j);
          scf::YieldOp::create(g.builder, g.loc);
        };
        scf::ForOp::create(g.builder, g.loc, g.index(0), g.index(gemm.getK()), g.index(depth),
                           ValueRange(), panel);
      });
    });
  }

  /// One panel of A against one of B for each register tile's columns. `a` and `b` are the block's
  /// first elements, or the whole matrix where it is one of patches.
  void emitBlock(Value a, Value b, Value c, Value bias, Range k, Range i, Range j) {
    if (gemm.getPatchesA())
      packPatchesA(a, i, k);
    else
      callShared(g, packA,
                 PackAArguments{
                     .a = g.at(a, gemm.getTransposeA() ? g.mul(k.first, gemm.getLda()) : k.first,
                               elementA),
                     .leading = g.index(gemm.getLda()),
                     .rows = i.count,
                     .depth = k.count,
                     .panel = panelA});
    emitColumns(b, c, bias, k, i.count, j);
  }

  /// Row by row, so that a gathered one is still near when it is packed.
  void packPatchesA(Value a, Range i, Range k) {
    PatchGatherer patches(g, gemm.getPatchesA(), elementA, a);
    g.loop(g.index(0), i.count, 1, [&](Value row) {
      Value packed = g.at(panelA, g.mul(row, layout.row), g.f32);
      Value to = packsInPlace() ? packed : lineOfA;
      patches.gatherLine(g.add(i.first, row), k, to);
      if (!packsInPlace())
        callShared(g, packA,
                   PackAArguments{.a = lineOfA,
                                  .leading = k.count,
                                  .rows = g.index(1),
                                  .depth = k.count,
                                  .panel = packed});
      else if (tile.lane == GemmLane::Bf16Pair) // the partner of a last odd one
        g.when(g.compare(arith::CmpIPredicate::ne, g.remainder(k.count, 2), g.index(0)),
               [&] { g.store(g.zeros(g.i16), g.at(to, k.count, g.i16)); });
    });
  }

  /// Columns `j` of patches of B, whose lines were located.
  void packPatchesB(Value b, Value depth, Range j) {
    PatchGatherer patches(g, gemm.getPatchesB(), elementB, b);
    Value isWhole = g.create<arith::AndIOp>(
        g.compare(arith::CmpIPredicate::eq, j.count, g.index(tile.columns())),
        patches.areNeighbours(j));
    auto pack = [&] {
      callShared(g, packLines,
                 PackLinesArguments{.b = g.at(b, patches.placeOfColumn(j.first), elementB),
                                    .places = placesOfB,
                                    .depth = depth,
                                    .panel = panelB});
    };
    auto gatherAndPack = [&] {
      patches.gatherLines(placesOfB, depth, j, linesOfB, tile.columns());
      callShared(g, packB,
                 PackBArguments{.b = linesOfB,
                                .leading = g.index(tile.columns()),
                                .depth = depth,
                                .columns = j.count,
                                .panel = panelB});
    };
    if (gemm.getPatchesB().getRun() < tile.columns())
      gatherAndPack();
    else
      g.choose(isWhole, pack, gatherAndPack);
  }

  void emitColumns(Value b, Value c, Value bias, Range k, Value rows, Range allColumns) {
    if (gemm.getPatchesB())
      PatchGatherer(g, gemm.getPatchesB(), elementB, b).locateLines(k, placesOfB);
    g.loop(g.index(0), allColumns.count, tile.columns(), [&](Value j) {
      Value width = g.fewer(g.index(tile.columns()), g.sub(allColumns.count, j));
      auto source = [&](Value j) {
        return g.at(b,
                    gemm.getTransposeB() ? g.add(g.mul(j, gemm.getLdb()), k.first)
                                         : g.add(g.mul(k.first, gemm.getLdb()), j),
                    elementB);
      };
      if (gemm.getPatchesB())
        packPatchesB(b, k.count, {g.add(allColumns.first, j), width});
      else
        callShared(g, packB,
                   PackBArguments{.b = source(j),
                                  .leading = g.index(gemm.getLdb()),
                                  .depth = k.count,
                                  .columns = width,
                                  .panel = panelB});
      Value next = source(g.add(j, tile.columns()));
      Value whole = g.sub(rows, g.remainder(rows, tile.rows));
      auto strip = [&](func::FuncOp callee, int64_t height, Value first, Value last) {
        g.loop(first, last, height, [&](Value i) {
          Value inBlock = g.remainder(i, tile.rows);
          Value from =
              g.add(g.mul(g.divide(i, tile.rows), layout.block), g.mul(inBlock, layout.row));
          emitTile({.callee = callee,
                    .height = height,
                    .a = g.at(panelA, from, g.f32),
                    .c = c,
                    .bias = bias,
                    .k = k,
                    .row = i,
                    .column = j,
                    .columns = width,
                    .fetch = fetched(next, i, k.count)});
        });
      };
      strip(fullTile, tile.rows, g.index(0), whole);
      strip(rowTile, 1, whole, rows);
    });
  }

  /// What the register tile at row `i` fetches of the next panel of B while it computes: `stride`
  /// bytes apart, as many pieces of tile.fetchedBytes() as it has rows. The tiles of one column
  /// share the panel's source out among them.
  struct Fetch {
    Value first, stride;
  };
  Fetch fetched(Value next, Value i, Value depth) {
    if (gemm.getPatchesB()) // whose next panel lies in many places
      return {panelB, g.index(0)};
    int64_t bytes = byteSize(elementB), leading = gemm.getLdb() * bytes;
    Value row = i, offset = g.index(0), exists;
    if (gemm.getTransposeB()) {
      // Rows of B are columns of the panel; one piece of each of them, then the pieces behind.
      row = g.remainder(i, tile.columns());
      offset = g.mul(g.divide(i, tile.columns()), tile.fetchedBytes());
      exists = g.compare(arith::CmpIPredicate::ult, offset, g.mul(depth, bytes));
    } else {
      exists = g.compare(arith::CmpIPredicate::ult, row, depth);
    }
    Value address = g.at(next, g.add(g.mul(row, leading), offset), g.i8);
    return {g.select(exists, address, panelB), g.select(exists, g.index(leading), g.index(0))};
  }

  /// One register tile of the block.
  struct RegisterTile {
    func::FuncOp callee;
    int64_t height;             ///< rows
    Value a;                    ///< packed, its first row
    Value c, bias;              ///< of the block
    Range k;                    ///< of the panel
    Value row, column, columns; ///< where it lies in the block, and how much of it counts
    Fetch fetch;
  };
  void emitTile(const RegisterTile& t) {
    Value sum = t.c, leading = g.index(gemm.getLdc());
    if (keepsSumsApart()) {
      sum = sums;
      leading = g.index(leadingOfSums());
    }
    Value cCorner = g.at(t.c, g.add(g.mul(t.row, gemm.getLdc()), t.column), resultElement);
    Value sumCorner = keepsSumsApart() || !epilogue.toBf16
                          ? g.at(sum, g.add(g.mul(t.row, leading), t.column), g.f32)
                          : finished;
    Value continues = gemm.getAccumulate()
                          ? g.flag(true)
                          : g.compare(arith::CmpIPredicate::ne, t.k.first, g.index(0));
    int64_t group = groupOf(tile.lane), lanes = group / elementsOf(tile.lane);
    TileArguments arguments = {.a = t.a,
                               .panel = panelB,
                               .from = sumCorner,
                               .fromRow = leading,
                               .to = sumCorner,
                               .toRow = leading,
                               .depth = g.mul(g.divide(g.add(t.k.count, group - 1), group), lanes),
                               .columns = t.columns,
                               .continues = continues,
                               .next = t.fetch.first,
                               .nextBytes = t.fetch.stride};
    if (!epilogue.any())
      return callShared(g, t.callee, arguments);
    Value isLast =
        g.compare(arith::CmpIPredicate::eq, g.add(t.k.first, t.k.count), g.index(gemm.getK()));
    arguments.to = g.select(isLast, finished, sumCorner);
    arguments.toRow = g.select(isLast, g.index(tile.columns()), leading);
    callShared(g, t.callee, arguments);
    g.when(isLast, [&] {
      callShared(
          g, finish,
          EpilogueArguments{.sums = finished,
                            .c = cCorner,
                            .cRow = g.index(gemm.getLdc()),
                            .bias = gemm.getBias() ? g.at(t.bias, t.column, resultElement) : t.bias,
                            .rows = g.index(t.height),
                            .columns = t.columns});
    });
  }

  KernelBuilder g;
  kernel::GemmAttr gemm;
  MachineModel machine;
  func::FuncOp function, packA, packB, packLines, fullTile, rowTile, finish;
  Type elementA, elementB, resultElement;
  GemmTile tile;
  GemmPanelA layout;
  GemmEpilogue epilogue;
  int64_t depth; ///< elements along k of a panel
  SmallVector<Value> operands;
  Value panelA, panelB; ///< packed operands
  Value lineOfA;        ///< one gathered row of patches
  Value placesOfB;      ///< where the lines of patches begin that a panel has
  Value linesOfB;       ///< their columns for one register tile, where they are no neighbours
  Value finished;       ///< complete sums of one register tile, for the epilogue
  Value sums;           ///< sums of a block between panels, where C cannot hold them
};

} // namespace

VectorShape vectorShape(const TargetInfo& target) {
  const CpuFeatures features(target);
  VectorShape shape;
  shape.width = features.has("avx512f") ? 16 : features.has("avx") ? 8 : 4;
  bool hasUnit = features.has("amx-bf16") && features.has("avx512bw");
  shape.matrixUnit = hasUnit ? MatrixUnitKind::Amx : MatrixUnitKind::None;
  shape.machine = target.machine.value_or(MachineModel());
  if (features.has("avx512bf16"))
    shape.bf16DotRate = shape.machine.bf16DotRate;
  return shape;
}

func::FuncOp emitGemmKernel(OpBuilder& builder, kernel::CallOp call, StringRef name,
                            const VectorShape& shape) {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = createKernelFunction(builder, call.getLoc(), name);
  builder.setInsertionPointToStart(&function.getBody().front());
  if (usesMatrixUnit(call, shape))
    emitMatrixGemm(builder, call, shape, function);
  else
    GemmEmitter(builder, call, shape, function).emit();
  func::ReturnOp::create(builder, call.getLoc());
  return function;
}

} // namespace titan::codegen
