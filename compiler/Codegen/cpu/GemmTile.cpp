#include "compiler/Codegen/cpu/GemmTile.h"

#include "compiler/Codegen/cpu/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen {
namespace {

/// f32 memory and vectors of one length, with i64 indices.
class TileBuilder {
public:
  TileBuilder(OpBuilder& builder, Location loc, int64_t width)
      : builder(builder), loc(loc), width(width), f32(builder.getF32Type()),
        vector(VectorType::get({width}, f32)) {}

  Value constant(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
  Value toI64(Value index) {
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
  }
  Value toIndex(Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  }
  Value at(Value pointer, Value element) {
    return LLVM::GEPOp::create(builder, loc, pointer.getType(), f32, pointer,
                               LLVM::GEPArg(element));
  }
  Value load(Value pointer) { return LLVM::LoadOp::create(builder, loc, vector, pointer, 4); }
  Value loadScalar(Value pointer) { return LLVM::LoadOp::create(builder, loc, f32, pointer, 4); }
  Value loadMasked(Value pointer, Value mask) {
    return LLVM::MaskedLoadOp::create(builder, loc, vector, pointer, mask, zeros(),
                                      builder.getI32IntegerAttr(4), UnitAttr());
  }
  void store(Value value, Value pointer) { LLVM::StoreOp::create(builder, loc, value, pointer, 4); }
  Value zeros() { return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vector)); }
  /// Lanes first, first + 1, ... that are below `count`.
  Value maskBelow(Value count, int64_t first) {
    SmallVector<int64_t> lanes(width);
    std::iota(lanes.begin(), lanes.end(), first);
    Value numbers = arith::ConstantOp::create(builder, loc, builder.getI64VectorAttr(lanes));
    Value limit = vector::BroadcastOp::create(builder, loc, numbers.getType(), count);
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, numbers, limit);
  }

  OpBuilder& builder;
  Location loc;
  int64_t width;
  Type f32;
  VectorType vector;
};

/// A private function of the module that `builder` stands in: found by its name, or created with a
/// body that `emit` fills.
func::FuncOp getShared(OpBuilder& builder, Location loc, StringRef name, ArrayRef<Type> arguments,
                       llvm::function_ref<void(Block&)> emit) {
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (!module)
    module = cast<ModuleOp>(builder.getInsertionBlock()->getParentOp());
  if (auto found = module.lookupSymbol<func::FuncOp>(name))
    return found;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(arguments, {}));
  function.setPrivate();
  builder.setInsertionPointToStart(function.addEntryBlock());
  emit(function.getBody().front());
  func::ReturnOp::create(builder, loc);
  return function;
}

/// rows[i][l] -> rows[l][i], by exchanging blocks of 1, 2, 4, ... lanes between pairs of rows.
void transposeSquare(TileBuilder& tile, SmallVectorImpl<Value>& rows) {
  int64_t width = tile.width;
  for (int64_t half = 1; half < width; half *= 2) {
    SmallVector<int64_t> low(width), high(width);
    for (int64_t lane = 0; lane < width; ++lane) {
      low[lane] = lane & half ? width + lane - half : lane;
      high[lane] = lane & half ? width + lane : lane + half;
    }
    for (int64_t row = 0; row < width; ++row)
      if ((row & half) == 0) {
        Value a = rows[row], b = rows[row + half];
        rows[row] = vector::ShuffleOp::create(tile.builder, tile.loc, a, b, low);
        rows[row + half] = vector::ShuffleOp::create(tile.builder, tile.loc, a, b, high);
      }
  }
}

/// B is stored [n, k]: squares of width x width are transposed in registers, the rest is copied one
/// by one.
void emitTransposedPack(TileBuilder& tile, Block& block, int64_t tileColumns) {
  OpBuilder& builder = tile.builder;
  Location loc = tile.loc;
  Value b = block.getArgument(0), ldb = block.getArgument(1), panel = block.getArgument(4);
  Value depth = tile.toIndex(block.getArgument(2)), columns = tile.toIndex(block.getArgument(3));
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value width = arith::ConstantIndexOp::create(builder, loc, tile.width);
  auto whole = [&](Value extent) -> Value {
    Value rest = arith::RemUIOp::create(builder, loc, extent, width);
    return arith::SubIOp::create(builder, loc, extent, rest);
  };
  auto slot = [&](Value k, Value j) {
    return tile.at(panel, tile.add(tile.mul(k, tile.constant(tileColumns)), j));
  };
  Value wholeDepth = whole(depth), wholeColumns = whole(columns);
  emitLoop(builder, loc, zero, wholeColumns, tile.width, {}, [&](Value j, ValueRange) {
    emitLoop(builder, loc, zero, wholeDepth, tile.width, {}, [&](Value k, ValueRange) {
      Value column = tile.toI64(j), row = tile.toI64(k);
      SmallVector<Value> rows;
      for (int64_t i = 0; i < tile.width; ++i) {
        Value line = tile.mul(tile.add(column, tile.constant(i)), ldb);
        rows.push_back(tile.load(tile.at(b, tile.add(line, row))));
      }
      transposeSquare(tile, rows);
      for (int64_t i = 0; i < tile.width; ++i)
        tile.store(rows[i], slot(tile.add(row, tile.constant(i)), column));
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
  auto copy = [&](Value firstColumn, Value firstRow, Value lastColumn) {
    emitLoop(builder, loc, firstColumn, lastColumn, 1, {}, [&](Value j, ValueRange) {
      Value column = tile.toI64(j), line = tile.mul(column, ldb);
      emitLoop(builder, loc, firstRow, depth, 1, {}, [&](Value k, ValueRange) {
        Value row = tile.toI64(k);
        tile.store(tile.loadScalar(tile.at(b, tile.add(line, row))), slot(row, column));
        return SmallVector<Value>();
      });
      return SmallVector<Value>();
    });
  };
  copy(zero, wholeDepth, wholeColumns);
  copy(wholeColumns, zero, columns);
  // Columns that the tile has and the matrix has not.
  Value all = arith::ConstantIndexOp::create(builder, loc, tileColumns);
  Value nothing = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  emitLoop(builder, loc, columns, all, 1, {}, [&](Value j, ValueRange) {
    emitLoop(builder, loc, zero, depth, 1, {}, [&](Value k, ValueRange) {
      tile.store(nothing, slot(tile.toI64(k), tile.toI64(j)));
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
}

void emitPlainPack(TileBuilder& tile, Block& block, int64_t tileColumns) {
  OpBuilder& builder = tile.builder;
  Location loc = tile.loc;
  Value b = block.getArgument(0), ldb = block.getArgument(1), panel = block.getArgument(4);
  SmallVector<Value> masks;
  for (int64_t first = 0; first < tileColumns; first += tile.width)
    masks.push_back(tile.maskBelow(block.getArgument(3), first));
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  emitLoop(builder, loc, zero, tile.toIndex(block.getArgument(2)), 1, {}, [&](Value k, ValueRange) {
    Value row = tile.toI64(k);
    Value from = tile.at(b, tile.mul(row, ldb));
    Value to = tile.at(panel, tile.mul(row, tile.constant(tileColumns)));
    for (auto [i, mask] : llvm::enumerate(masks)) {
      Value offset = tile.constant(i * tile.width);
      tile.store(tile.loadMasked(tile.at(from, offset), mask), tile.at(to, offset));
    }
    return SmallVector<Value>();
  });
}

void emitTile(TileBuilder& tile, Block& block, int64_t rows, int64_t tileColumns) {
  OpBuilder& builder = tile.builder;
  Location loc = tile.loc;
  Value a = block.getArgument(0), aRow = block.getArgument(1), aColumn = block.getArgument(2);
  Value panel = block.getArgument(3), c = block.getArgument(4), ldc = block.getArgument(5);
  Value depth = block.getArgument(6), columns = block.getArgument(7);
  Value continues = block.getArgument(8), hasBias = block.getArgument(9);
  Value bias = block.getArgument(10), relu = block.getArgument(11);
  int64_t vectors = tileColumns / tile.width;
  SmallVector<Value> masks, cPointers, aRows;
  for (int64_t v = 0; v < vectors; ++v)
    masks.push_back(tile.maskBelow(columns, v * tile.width));
  for (int64_t i = 0; i < rows; ++i) {
    Value line = tile.at(c, tile.mul(tile.constant(i), ldc));
    aRows.push_back(tile.at(a, tile.mul(tile.constant(i), aRow)));
    for (int64_t v = 0; v < vectors; ++v)
      cPointers.push_back(tile.at(line, tile.constant(v * tile.width)));
  }
  SmallVector<Value> sums(rows * vectors, tile.zeros());
  sums = emitIf(builder, loc, continues, sums, [&] {
    SmallVector<Value> loaded;
    for (auto [i, pointer] : llvm::enumerate(cPointers))
      loaded.push_back(tile.loadMasked(pointer, masks[i % vectors]));
    return loaded;
  });
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  sums = emitLoop(builder, loc, zero, tile.toIndex(depth), 1, sums,
                  [&](Value index, ValueRange carried) {
                    Value k = tile.toI64(index), aOffset = tile.mul(k, aColumn);
                    Value line = tile.at(panel, tile.mul(k, tile.constant(tileColumns)));
                    SmallVector<Value> b, next;
                    for (int64_t v = 0; v < vectors; ++v)
                      b.push_back(tile.load(tile.at(line, tile.constant(v * tile.width))));
                    for (int64_t i = 0; i < rows; ++i) {
                      Value scalar = tile.loadScalar(tile.at(aRows[i], aOffset));
                      Value factor = vector::BroadcastOp::create(builder, loc, tile.vector, scalar);
                      for (int64_t v = 0; v < vectors; ++v)
                        next.push_back(math::FmaOp::create(builder, loc, factor, b[v],
                                                           carried[i * vectors + v]));
                    }
                    return next;
                  });
  sums = emitIf(builder, loc, hasBias, sums, [&] {
    SmallVector<Value> shifted;
    for (int64_t v = 0; v < vectors; ++v)
      shifted.push_back(tile.loadMasked(tile.at(bias, tile.constant(v * tile.width)), masks[v]));
    SmallVector<Value> result;
    for (auto [i, sum] : llvm::enumerate(sums))
      result.push_back(arith::AddFOp::create(builder, loc, sum, shifted[i % vectors]));
    return result;
  });
  sums = emitIf(builder, loc, relu, sums, [&] {
    SmallVector<Value> result;
    for (Value sum : sums)
      result.push_back(arith::MaximumFOp::create(builder, loc, sum, tile.zeros()));
    return result;
  });
  for (auto [i, sum] : llvm::enumerate(sums))
    LLVM::MaskedStoreOp::create(builder, loc, sum, cPointers[i], masks[i % vectors], 4);
}

} // namespace

GemmTile gemmTile(const VectorShape& shape, int64_t columns) {
  // 32 registers hold 16 accumulators, 16 registers 8.
  int64_t widest = shape.width >= 16 ? 4 : 2;
  GemmTile tile;
  tile.width = shape.width;
  tile.vectors = std::clamp<int64_t>(llvm::divideCeilSigned(columns, shape.width), 1, widest);
  tile.rows = widest == 4 && tile.vectors <= 2 ? 8 : 4;
  return tile;
}

func::FuncOp getPackFunction(OpBuilder& builder, Location loc, bool transposed,
                             const GemmTile& tile) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), i64 = builder.getI64Type();
  std::string name = transposed ? "gemm_pack_transposed_" : "gemm_pack_";
  return getShared(builder, loc, name + std::to_string(tile.columns()),
                   {pointer, i64, i64, i64, pointer}, [&](Block& block) {
                     TileBuilder body(builder, loc, tile.width);
                     if (transposed)
                       emitTransposedPack(body, block, tile.columns());
                     else
                       emitPlainPack(body, block, tile.columns());
                   });
}

func::FuncOp getTileFunction(OpBuilder& builder, Location loc, const GemmTile& tile) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), i64 = builder.getI64Type();
  Type i1 = builder.getI1Type();
  std::string name =
      "gemm_tile_" + std::to_string(tile.rows) + "_" + std::to_string(tile.columns());
  return getShared(builder, loc, name,
                   {pointer, i64, i64, pointer, pointer, i64, i64, i64, i1, i1, pointer, i1},
                   [&](Block& block) {
                     TileBuilder body(builder, loc, tile.width);
                     emitTile(body, block, tile.rows, tile.columns());
                   });
}

} // namespace titan::codegen
