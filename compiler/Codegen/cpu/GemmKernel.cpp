#include "compiler/Codegen/cpu/GemmKernel.h"

#include "compiler/Codegen/cpu/GemmBuilder.h"
#include "compiler/Codegen/cpu/GemmPack.h"

using namespace mlir;

namespace titan::codegen {
namespace {

// A panel of A on the stack: 800 KiB, which leaves the second-level cache room for one of B.
constexpr int64_t mostPackedRows = 512;

Type elementOf(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }

/// The loops of one product around the shared functions.
class GemmEmitter {
public:
  GemmEmitter(OpBuilder& builder, kernel::CallOp call, const VectorShape& shape,
              func::FuncOp function)
      : builder(builder), loc(call.getLoc()), g(builder, loc, shape.width), gemm(call.getGemm()),
        function(function), elementA(elementOf(call.getIns()[0])),
        elementB(elementOf(call.getIns()[1])), resultElement(elementOf(call.getOuts()[0])),
        tileM(std::min(gemm.getTileM(), gemm.getM())),
        tileN(std::min(gemm.getTileN(), gemm.getN())) {
    GemmLane lane = elementA.isBF16() ? GemmLane::Bf16Pair : GemmLane::F32;
    tile = gemmTile(shape, lane, tileM, tileN);
    layout = panelOfA(tile, gemm.getTransposeA());
    GemmTile row = tile;
    row.rows = 1;
    packA = getPackA(builder, loc, tile, layout, gemm.getTransposeA());
    packB =
        getPackB(builder, loc, tile, gemm.getTransposeB(), elementA.isBF16() && elementB.isF32());
    fullTile = getTileFunction(builder, loc, tile, layout);
    rowTile = getTileFunction(builder, loc, row, layout);
    epilogue = {gemm.getBias(), gemm.getRelu(), resultElement.isBF16()};
    if (epilogue.any())
      finish = getEpilogueFunction(builder, loc, tile, epilogue);

    // Equal panels, of whole lines.
    constexpr int64_t line = 16;
    int64_t lanes = llvm::divideCeil(gemm.getK(), elementsOf(lane));
    int64_t panels = llvm::divideCeil(lanes, gemmDepth);
    depth = llvm::alignTo(llvm::divideCeil(lanes, panels), line) * elementsOf(lane);
  }

  void emit() {
    operands = loadOperands(builder, loc, function, gemm.getBias() ? 4 : 3);
    int64_t rows = llvm::alignTo(std::min(tileM, mostPackedRows), tile.rows);
    panelA = reserve(rows / tile.rows * layout.block);
    panelB = reserve(gemmDepth * tile.columns());
    if (epilogue.any())
      finished = reserve(tile.rows * tile.columns());
    if (keepsSumsApart())
      sums = reserve(tileM * tileN);
    g.loop(function.getArgument(2), function.getArgument(3), 1,
           [&](Value unit) { emitUnit(unit); });
  }

private:
  /// `lanes` f32 on the stack.
  Value reserve(int64_t lanes) {
    return LLVM::AllocaOp::create(builder, loc, operands[0].getType(), g.f32, g.constant(lanes),
                                  /*alignment=*/64);
  }
  /// bf16 cannot hold the sums between two panels.
  bool keepsSumsApart() const { return epilogue.toBf16 && depth < gemm.getK(); }

  void emitUnit(Value unit) {
    int64_t tilesN = llvm::divideCeil(gemm.getN(), gemm.getTileN());
    int64_t tiles = llvm::divideCeil(gemm.getM(), gemm.getTileM()) * tilesN;
    Value matrix = g.divide(unit, tiles), place = g.remainder(unit, tiles);
    Value row = g.mul(g.divide(place, tilesN), gemm.getTileM());
    Value column = g.mul(g.remainder(place, tilesN), gemm.getTileN());
    Value rows = g.smaller(g.constant(gemm.getTileM()), g.sub(g.constant(gemm.getM()), row));
    Value columns = g.smaller(g.constant(gemm.getTileN()), g.sub(g.constant(gemm.getN()), column));
    Value a = g.at(g.at(operands[0], g.mul(matrix, gemm.getStrideA()), elementA),
                   gemm.getTransposeA() ? row : g.mul(row, gemm.getLda()), elementA);
    Value b = g.at(g.at(operands[1], g.mul(matrix, gemm.getStrideB()), elementB),
                   gemm.getTransposeB() ? g.mul(column, gemm.getLdb()) : column, elementB);
    Value c =
        g.at(operands[2],
             g.add(g.mul(matrix, gemm.getStrideC()), g.add(g.mul(row, gemm.getLdc()), column)),
             resultElement);
    Value bias = gemm.getBias() ? g.at(operands[3], column, g.f32) : operands[2];
    g.loop(g.constant(0), g.constant(gemm.getK()), depth, [&](Value k) {
      Value elements = g.smaller(g.constant(depth), g.sub(g.constant(gemm.getK()), k));
      g.loop(g.constant(0), rows, mostPackedRows, [&](Value i) {
        Value height = g.smaller(g.constant(mostPackedRows), g.sub(rows, i));
        emitBlock(a, b, c, bias, {k, elements}, {i, height}, columns);
      });
    });
  }

  struct Range {
    Value first, count;
  };

  /// One panel of A against all columns of the unit.
  void emitBlock(Value a, Value b, Value c, Value bias, Range k, Range rows, Value columns) {
    Value corner = gemm.getTransposeA() ? g.add(g.mul(k.first, gemm.getLda()), rows.first)
                                        : g.add(g.mul(rows.first, gemm.getLda()), k.first);
    call(packA,
         {g.at(a, corner, elementA), g.constant(gemm.getLda()), rows.count, k.count, panelA});
    g.loop(g.constant(0), columns, tile.columns(), [&](Value j) {
      Value width = g.smaller(g.constant(tile.columns()), g.sub(columns, j));
      Value at = gemm.getTransposeB() ? g.add(g.mul(j, gemm.getLdb()), k.first)
                                      : g.add(g.mul(k.first, gemm.getLdb()), j);
      call(packB, {g.at(b, at, elementB), g.constant(gemm.getLdb()), k.count, width, panelB});
      Value whole = g.sub(rows.count, g.remainder(rows.count, tile.rows));
      auto strip = [&](func::FuncOp callee, int64_t height, Value first, Value last) {
        g.loop(first, last, height, [&](Value i) {
          Value inBlock = g.remainder(i, tile.rows);
          Value from =
              g.add(g.mul(g.divide(i, tile.rows), layout.block), g.mul(inBlock, layout.row));
          emitTile(callee, height, g.at(panelA, from, g.f32), c, bias, k, g.add(rows.first, i), j,
                   width);
        });
      };
      strip(fullTile, tile.rows, g.constant(0), whole);
      strip(rowTile, 1, whole, rows.count);
    });
  }

  /// One register tile at row i, column j of the unit.
  void emitTile(func::FuncOp callee, int64_t height, Value a, Value c, Value bias, Range k, Value i,
                Value j, Value columns) {
    Value sum = c, leading = g.constant(gemm.getLdc());
    if (keepsSumsApart()) {
      sum = sums;
      leading = g.constant(tileN);
    }
    Value cCorner = g.at(c, g.add(g.mul(i, gemm.getLdc()), j), resultElement);
    Value sumCorner = keepsSumsApart() || !epilogue.toBf16
                          ? g.at(sum, g.add(g.mul(i, leading), j), g.f32)
                          : finished;
    Value continues = gemm.getAccumulate()
                          ? arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true))
                          : g.compare(arith::CmpIPredicate::ne, k.first, g.constant(0));
    Value lanes =
        g.divide(g.add(k.count, g.constant(elementsOf(tile.lane) - 1)), elementsOf(tile.lane));
    if (!epilogue.any()) {
      call(callee, {a, panelB, sumCorner, leading, sumCorner, leading, lanes, columns, continues});
      return;
    }
    Value isLast =
        g.compare(arith::CmpIPredicate::eq, g.add(k.first, k.count), g.constant(gemm.getK()));
    auto choose = [&](Value last, Value before) {
      return arith::SelectOp::create(builder, loc, isLast, last, before);
    };
    call(callee, {a, panelB, sumCorner, leading, choose(finished, sumCorner),
                  choose(g.constant(tile.columns()), leading), lanes, columns, continues});
    emitIf(builder, loc, isLast, {}, [&] {
      call(finish, {finished, cCorner, g.constant(gemm.getLdc()),
                    gemm.getBias() ? g.at(bias, j, g.f32) : bias, g.constant(height), columns});
      return SmallVector<Value>();
    });
  }

  void call(func::FuncOp callee, ArrayRef<Value> arguments) {
    func::CallOp::create(builder, loc, callee, arguments);
  }

  OpBuilder& builder;
  Location loc;
  GemmBuilder g;
  kernel::GemmAttr gemm;
  func::FuncOp function, packA, packB, fullTile, rowTile, finish;
  Type elementA, elementB, resultElement;
  int64_t tileM, tileN;
  GemmTile tile;
  GemmPanelA layout;
  GemmEpilogue epilogue;
  int64_t depth; ///< elements along k of a panel
  SmallVector<Value> operands;
  Value panelA, panelB; ///< packed operands
  Value finished;       ///< complete sums of one register tile, for the epilogue
  Value sums;           ///< sums of the unit between panels, where C cannot hold them
};

} // namespace

VectorShape vectorShape(const TargetInfo& target) {
  VectorShape shape;
  shape.width = hasFeature(target, "avx512f") ? 16 : hasFeature(target, "avx") ? 8 : 4;
  shape.multipliesBf16 = hasFeature(target, "avx512bf16");
  return shape;
}

func::FuncOp emitGemmKernel(OpBuilder& builder, kernel::CallOp call, StringRef name,
                            const VectorShape& shape) {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = createKernelFunction(builder, call.getLoc(), name);
  builder.setInsertionPointToStart(&function.getBody().front());
  GemmEmitter(builder, call, shape, function).emit();
  func::ReturnOp::create(builder, call.getLoc());
  return function;
}

} // namespace titan::codegen
