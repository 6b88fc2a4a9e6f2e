#include "compiler/Codegen/cpu/GemmKernel.h"

#include "compiler/Codegen/cpu/GemmTile.h"
#include "compiler/Codegen/cpu/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace titan::codegen {
namespace {

// A panel of A on the stack stays below 600 KiB; a line more than a row of it.
constexpr int64_t mostPackedRows = 1024, paddingElements = 16;

/// The loops of one configuration around the shared functions. Indices are of type index.
class GemmEmitter {
public:
  GemmEmitter(OpBuilder& builder, Location loc, kernel::GemmAttr gemm, const VectorShape& shape,
              func::FuncOp function)
      : builder(builder), loc(loc), gemm(gemm),
        tile(gemmTile(shape, std::min(gemm.getTileN(), gemm.getN()))), function(function),
        pack(getPackFunction(builder, loc, gemm.getTransposeB(), tile)),
        fullTile(getTileFunction(builder, loc, tile)),
        rowTile(getTileFunction(builder, loc, {1, tile.vectors, tile.width})) {}

  void emit() {
    operands = loadOperands(builder, loc, function, gemm.getBias() ? 4 : 3);
    panel = LLVM::AllocaOp::create(builder, loc, operands[0].getType(), builder.getF32Type(),
                                   i64(gemmDepth * tile.columns()), /*alignment=*/64);
    if (packsA())
      aPanel = LLVM::AllocaOp::create(builder, loc, operands[0].getType(), builder.getF32Type(),
                                      i64(gemmDepth * aPanelRow()), /*alignment=*/64);
    emitLoop(builder, loc, toIndex(function.getArgument(2)), toIndex(function.getArgument(3)), 1,
             {}, [&](Value unit, ValueRange) {
               emitUnit(unit);
               return SmallVector<Value>();
             });
  }

private:
  Value index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value i64(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  }
  Value flag(bool value) {
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
  }
  Value toIndex(Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  }
  Value toI64(Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value mul(Value a, int64_t b) { return arith::MulIOp::create(builder, loc, a, index(b)); }
  Value divide(Value a, int64_t b) { return arith::DivUIOp::create(builder, loc, a, index(b)); }
  Value remainder(Value a, int64_t b) { return arith::RemUIOp::create(builder, loc, a, index(b)); }
  Value smaller(Value a, Value b) { return arith::MinUIOp::create(builder, loc, a, b); }
  Value minus(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value is(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value at(Value pointer, Value element) {
    return LLVM::GEPOp::create(builder, loc, pointer.getType(), builder.getF32Type(), pointer,
                               LLVM::GEPArg(toI64(element)));
  }
  void loop(Value low, Value high, int64_t step, llvm::function_ref<void(Value)> body) {
    emitLoop(builder, loc, low, high, step, {}, [&](Value induction, ValueRange) {
      body(induction);
      return SmallVector<Value>();
    });
  }

  /// A transposed A is walked down its columns: the lines of one step collide in the cache where
  /// the leading dimension is a multiple of a power of two. Its panel is copied to rows that do
  /// not.
  bool packsA() const { return gemm.getTransposeA() && gemm.getTileM() <= mostPackedRows; }
  int64_t aPanelRow() const { return gemm.getTileM() + paddingElements; }

  void packA(Value a, Value row, Value rowEnd, Value k, Value depth) {
    Value bytes = toI64(mul(minus(rowEnd, row), 4));
    loop(index(0), depth, 1, [&](Value step) {
      Value from = at(a, add(mul(add(k, step), gemm.getLda()), row));
      LLVM::MemcpyOp::create(builder, loc, at(aPanel, mul(step, aPanelRow())), from, bytes,
                             /*isVolatile=*/false);
    });
  }

  void emitUnit(Value unit) {
    int64_t tilesN = llvm::divideCeil(gemm.getN(), gemm.getTileN());
    int64_t tiles = llvm::divideCeil(gemm.getM(), gemm.getTileM()) * tilesN;
    Value matrix = divide(unit, tiles), place = remainder(unit, tiles);
    Value row = mul(divide(place, tilesN), gemm.getTileM());
    Value column = mul(remainder(place, tilesN), gemm.getTileN());
    Value rowEnd = smaller(add(row, index(gemm.getTileM())), index(gemm.getM()));
    Value columnEnd = smaller(add(column, index(gemm.getTileN())), index(gemm.getN()));
    Value a = at(operands[0], mul(matrix, gemm.getStrideA()));
    Value b = at(operands[1], mul(matrix, gemm.getStrideB()));
    Value c = at(operands[2], mul(matrix, gemm.getStrideC()));
    loop(index(0), index(gemm.getK()), gemmDepth, [&](Value k) {
      Value depth = smaller(minus(index(gemm.getK()), k), index(gemmDepth));
      if (packsA())
        packA(a, row, rowEnd, k, depth);
      loop(column, columnEnd, tile.columns(), [&](Value j) {
        Value columns = smaller(minus(columnEnd, j), index(tile.columns()));
        Value corner =
            gemm.getTransposeB() ? add(mul(j, gemm.getLdb()), k) : add(mul(k, gemm.getLdb()), j);
        func::CallOp::create(
            builder, loc, pack,
            ValueRange{at(b, corner), i64(gemm.getLdb()), toI64(depth), toI64(columns), panel});
        Value whole = minus(rowEnd, remainder(minus(rowEnd, row), tile.rows));
        loop(row, whole, tile.rows, [&](Value i) {
          emitTile(fullTile, cornerOfA(a, row, i, k), c, i, j, k, depth, columns);
        });
        loop(whole, rowEnd, 1, [&](Value i) {
          emitTile(rowTile, cornerOfA(a, row, i, k), c, i, j, k, depth, columns);
        });
      });
    });
  }

  int64_t aRow() const { return gemm.getTransposeA() ? 1 : gemm.getLda(); }
  int64_t aColumn() const {
    return packsA() ? aPanelRow() : gemm.getTransposeA() ? gemm.getLda() : 1;
  }
  Value cornerOfA(Value a, Value row, Value i, Value k) {
    return packsA() ? at(aPanel, minus(i, row)) : at(a, add(mul(i, aRow()), mul(k, aColumn())));
  }

  void emitTile(func::FuncOp callee, Value aCorner, Value c, Value i, Value j, Value k, Value depth,
                Value columns) {
    Value cCorner = at(c, add(mul(i, gemm.getLdc()), j));
    Value continues = gemm.getAccumulate() ? flag(true) : is(arith::CmpIPredicate::ne, k, index(0));
    Value isLast = is(arith::CmpIPredicate::eq, add(k, depth), index(gemm.getK()));
    Value bias = gemm.getBias() ? at(operands[3], j) : operands[2];
    func::CallOp::create(builder, loc, callee,
                         ValueRange{aCorner, i64(aRow()), i64(aColumn()), panel, cCorner,
                                    i64(gemm.getLdc()), toI64(depth), toI64(columns), continues,
                                    gemm.getBias() ? isLast : flag(false), bias,
                                    gemm.getRelu() ? isLast : flag(false)});
  }

  OpBuilder& builder;
  Location loc;
  kernel::GemmAttr gemm;
  GemmTile tile;
  func::FuncOp function, pack, fullTile, rowTile;
  SmallVector<Value> operands;
  Value panel, aPanel;
};

} // namespace

VectorShape vectorShape(const TargetInfo& target) {
  VectorShape shape;
  shape.width = hasFeature(target, "avx512f") ? 16 : hasFeature(target, "avx") ? 8 : 4;
  return shape;
}

func::FuncOp emitGemmKernel(OpBuilder& builder, Location loc, kernel::GemmAttr gemm, StringRef name,
                            const VectorShape& shape) {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = createKernelFunction(builder, loc, name);
  builder.setInsertionPointToStart(&function.getBody().front());
  GemmEmitter(builder, loc, gemm, shape, function).emit();
  func::ReturnOp::create(builder, loc);
  return function;
}

} // namespace titan::codegen
