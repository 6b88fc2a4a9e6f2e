#include "compiler/Codegen/cpu/GemmKernel.h"

#include "compiler/Codegen/cpu/GemmBuilder.h"
#include "compiler/Codegen/cpu/GemmPack.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace titan::codegen {
namespace {

// A panel of A on the stack: 832 KiB of the second-level cache.
constexpr int64_t mostRows = 1024;
// A block of C stays in the third-level cache from one panel along k to the next; its sums in f32,
// where C cannot hold them, take at most 3 MiB of the stack.
constexpr int64_t mostColumnsOfC = 1536, mostColumnsOfSums = 768;

int64_t byteSize(Type element) { return element.getIntOrFloatBitWidth() / 8; }
Type elementOf(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }

/// The loops of one product around the shared functions.
class GemmEmitter {
public:
  GemmEmitter(OpBuilder& builder, kernel::CallOp call, const VectorShape& shape,
              func::FuncOp function)
      : builder(builder), loc(call.getLoc()), g(builder, loc, shape.width), gemm(call.getGemm()),
        function(function), elementA(elementOf(call.getIns()[0])),
        elementB(elementOf(call.getIns()[1])), resultElement(elementOf(call.getOuts()[0])) {
    GemmLane lane = elementA.isBF16() ? GemmLane::Bf16Pair : GemmLane::F32;
    tile = gemmTile(shape, lane, std::min(gemm.getTileM(), gemm.getM()),
                    std::min(gemm.getTileN(), gemm.getN()));
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
    int64_t rows = llvm::alignTo(std::min(gemm.getM(), mostRows), tile.rows);
    panelA = reserve(rows / tile.rows * layout.block);
    panelB = reserve(gemmDepth * tile.columns());
    if (epilogue.any())
      finished = reserve(tile.rows * tile.columns());
    if (keepsSumsApart())
      sums = reserve(rows * leadingOfSums());
    emitRectangles();
  }

private:
  struct Range {
    Value first, count;
  };

  /// `lanes` f32 on the stack.
  Value reserve(int64_t lanes) {
    return LLVM::AllocaOp::create(builder, loc, operands[0].getType(), g.f32, g.constant(lanes),
                                  /*alignment=*/64);
  }
  /// bf16 cannot hold the sums between two panels.
  bool keepsSumsApart() const { return epilogue.toBf16 && depth < gemm.getK(); }
  int64_t mostColumns() const { return keepsSumsApart() ? mostColumnsOfSums : mostColumnsOfC; }
  int64_t leadingOfSums() const {
    return llvm::alignTo(std::min(gemm.getN(), mostColumnsOfSums), tile.columns());
  }

  /// The units [begin, end) as rectangles of C, which share what is packed: whole lines of tiles
  /// where the range covers them, or a part of one line. Lines run along the shorter side of C, so
  /// that a thread's share is nearer to a square.
  void emitRectangles() {
    int64_t tilesM = llvm::divideCeil(gemm.getM(), gemm.getTileM());
    int64_t tilesN = llvm::divideCeil(gemm.getN(), gemm.getTileN());
    bool alongM = gemm.getM() <= gemm.getN();
    int64_t perLine = alongM ? tilesM : tilesN, perMatrix = tilesM * tilesN;
    Value end = function.getArgument(3);
    scf::WhileOp::create(
        builder, loc, builder.getI64Type(), function.getArgument(2),
        [&](OpBuilder&, Location, ValueRange unit) {
          scf::ConditionOp::create(builder, loc, g.compare(arith::CmpIPredicate::slt, unit[0], end),
                                   unit);
        },
        [&](OpBuilder&, Location, ValueRange carried) {
          Value unit = carried[0], matrix = g.divide(unit, perMatrix);
          Value place = g.remainder(unit, perMatrix);
          Value line = g.divide(place, perLine), inLine = g.remainder(place, perLine);
          Value left = g.smaller(g.sub(end, unit), g.sub(g.constant(perMatrix), place));
          Value startsLine = g.compare(arith::CmpIPredicate::eq, inLine, g.constant(0));
          Value coversLine = g.compare(arith::CmpIPredicate::uge, left, g.constant(perLine));
          Value isWhole = arith::AndIOp::create(builder, loc, startsLine, coversLine);
          auto choose = [&](Value whole, Value part) {
            return arith::SelectOp::create(builder, loc, isWhole, whole, part);
          };
          Value lines = choose(g.divide(left, perLine), g.constant(1));
          Value tiles =
              choose(g.constant(perLine), g.smaller(left, g.sub(g.constant(perLine), inLine)));
          Range along = {inLine, tiles}, across = {line, lines};
          emitRectangle(matrix, elements(alongM ? along : across, gemm.getTileM(), gemm.getM()),
                        elements(alongM ? across : along, gemm.getTileN(), gemm.getN()));
          scf::YieldOp::create(builder, loc, g.add(unit, g.mul(lines, tiles)));
        });
  }

  /// The elements of `tiles`, of which the last may be cut by the extent.
  Range elements(Range tiles, int64_t tile, int64_t extent) {
    Value first = g.mul(tiles.first, tile);
    return {first, g.smaller(g.mul(tiles.count, tile), g.sub(g.constant(extent), first))};
  }

  /// for each of the fewest equal pieces of at most `most` elements, in whole steps.
  void forEachPiece(Range range, int64_t most, int64_t step, llvm::function_ref<void(Range)> body) {
    Value pieces = g.divide(g.add(range.count, g.constant(most - 1)), most);
    Value steps = g.divide(g.add(range.count, g.constant(step - 1)), step);
    Value extent = g.mul(g.divideCeil(steps, pieces), step);
    Value end = g.add(range.first, range.count);
    g.loop(g.constant(0), pieces, 1, [&](Value piece) {
      Value first = g.add(range.first, g.mul(piece, extent));
      // Pieces in whole steps may cover the range before the last one.
      Value begin = g.smaller(first, end);
      body({begin, g.smaller(extent, g.sub(end, begin))});
    });
  }

  /// Blocks of C, each with all of its panels along k, so that its sums stay in cache.
  void emitRectangle(Value matrix, Range rows, Range columns) {
    Value a = g.at(operands[0], g.mul(matrix, gemm.getStrideA()), elementA);
    Value b = g.at(operands[1], g.mul(matrix, gemm.getStrideB()), elementB);
    Value c = g.at(operands[2], g.mul(matrix, gemm.getStrideC()), resultElement);
    forEachPiece(rows, mostRows, tile.rows, [&](Range i) {
      forEachPiece(columns, mostColumns(), tile.columns(), [&](Range j) {
        Value aBlock =
            g.at(a, gemm.getTransposeA() ? i.first : g.mul(i.first, gemm.getLda()), elementA);
        Value bBlock =
            g.at(b, gemm.getTransposeB() ? g.mul(j.first, gemm.getLdb()) : j.first, elementB);
        Value cBlock = g.at(c, g.add(g.mul(i.first, gemm.getLdc()), j.first), resultElement);
        Value bias = gemm.getBias() ? g.at(operands[3], j.first, g.f32) : operands[2];
        g.loop(g.constant(0), g.constant(gemm.getK()), depth, [&](Value k) {
          Value elements = g.smaller(g.constant(depth), g.sub(g.constant(gemm.getK()), k));
          emitBlock(aBlock, bBlock, cBlock, bias, {k, elements}, i.count, j.count);
        });
      });
    });
  }

  /// One panel of A against one of B for each register tile's columns.
  void emitBlock(Value a, Value b, Value c, Value bias, Range k, Value rows, Value columns) {
    Value corner = gemm.getTransposeA() ? g.mul(k.first, gemm.getLda()) : k.first;
    call(packA, {g.at(a, corner, elementA), g.constant(gemm.getLda()), rows, k.count, panelA});
    g.loop(g.constant(0), columns, tile.columns(), [&](Value j) {
      Value width = g.smaller(g.constant(tile.columns()), g.sub(columns, j));
      auto source = [&](Value j) {
        return g.at(b,
                    gemm.getTransposeB() ? g.add(g.mul(j, gemm.getLdb()), k.first)
                                         : g.add(g.mul(k.first, gemm.getLdb()), j),
                    elementB);
      };
      call(packB, {source(j), g.constant(gemm.getLdb()), k.count, width, panelB});
      Value next = source(g.add(j, g.constant(tile.columns())));
      Value whole = g.sub(rows, g.remainder(rows, tile.rows));
      auto strip = [&](func::FuncOp callee, int64_t height, Value first, Value last) {
        g.loop(first, last, height, [&](Value i) {
          Value inBlock = g.remainder(i, tile.rows);
          Value from =
              g.add(g.mul(g.divide(i, tile.rows), layout.block), g.mul(inBlock, layout.row));
          emitTile(callee, height, g.at(panelA, from, g.f32), c, bias, k, i, j, width,
                   fetched(next, i, k.count));
        });
      };
      strip(fullTile, tile.rows, g.constant(0), whole);
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
    int64_t bytes = byteSize(elementB), leading = gemm.getLdb() * bytes;
    Value row = i, offset = g.constant(0), exists;
    if (gemm.getTransposeB()) {
      // Rows of B are columns of the panel; one piece of each of them, then the pieces behind.
      row = g.remainder(i, tile.columns());
      offset = g.mul(g.divide(i, tile.columns()), tile.fetchedBytes());
      exists = g.compare(arith::CmpIPredicate::ult, offset, g.mul(depth, bytes));
    } else {
      exists = g.compare(arith::CmpIPredicate::ult, row, depth);
    }
    Value address = g.at(next, g.add(g.mul(row, leading), offset), builder.getI8Type());
    return {arith::SelectOp::create(builder, loc, exists, address, panelB),
            arith::SelectOp::create(builder, loc, exists, g.constant(leading), g.constant(0))};
  }

  /// One register tile at row i, column j of the block.
  void emitTile(func::FuncOp callee, int64_t height, Value a, Value c, Value bias, Range k, Value i,
                Value j, Value columns, Fetch fetch) {
    Value sum = c, leading = g.constant(gemm.getLdc());
    if (keepsSumsApart()) {
      sum = sums;
      leading = g.constant(leadingOfSums());
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
      call(callee, {a, panelB, sumCorner, leading, sumCorner, leading, lanes, columns, continues,
                    fetch.first, fetch.stride});
      return;
    }
    Value isLast =
        g.compare(arith::CmpIPredicate::eq, g.add(k.first, k.count), g.constant(gemm.getK()));
    auto choose = [&](Value last, Value before) {
      return arith::SelectOp::create(builder, loc, isLast, last, before);
    };
    call(callee, {a, panelB, sumCorner, leading, choose(finished, sumCorner),
                  choose(g.constant(tile.columns()), leading), lanes, columns, continues,
                  fetch.first, fetch.stride});
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
  GemmTile tile;
  GemmPanelA layout;
  GemmEpilogue epilogue;
  int64_t depth; ///< elements along k of a panel
  SmallVector<Value> operands;
  Value panelA, panelB; ///< packed operands
  Value finished;       ///< complete sums of one register tile, for the epilogue
  Value sums;           ///< sums of a block between panels, where C cannot hold them
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
