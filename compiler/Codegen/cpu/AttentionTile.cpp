#include "compiler/Codegen/cpu/AttentionTile.h"

#include "compiler/Codegen/cpu/MatrixUnit.h"
#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>

using namespace mlir;

namespace titan::codegen {
namespace {

template <typename... Parts> std::string join(const Parts&... parts) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  ((stream << parts), ...);
  return text;
}

constexpr int64_t cacheLine = 64;

/// Rows of a register tile: half of the registers hold sums, in at least eight chains.
int64_t tileRows(const AttentionTypes& types, int64_t vectors) {
  return types.vectors / vectors >= 2 ? 8 : 4;
}

/// sums + factor * b, where factor is one element of A, or a pair, in every lane.
Value multiplyAdd(FloatBuilder& b, const AttentionTypes& types, Value factor, Value right,
                  Value sum) {
  if (types.pair == 1)
    return b.fma(factor, right, sum);
  StringAttr name = b.builder.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512");
  return LLVM::CallIntrinsicOp::create(b.builder, b.loc, b.vector, name,
                                       ValueRange{sum, factor, right})
      .getResult(0);
}

/// Rows row .. row + rows - 1 of a strip.
void emitProductRows(FloatBuilder& b, const AttentionTypes& types, const ProductArguments& arg,
                     int64_t vectors, int64_t rows, Value row) {
  SmallVector<Value> cPointers, aRows;
  for (int64_t i = 0; i < rows; ++i) {
    Value line = b.add(row, i);
    prefetchRow(b, types, b.at(arg.ahead, b.mul(line, arg.aheadRow), types.element));
    aRows.push_back(b.at(arg.a, b.mul(line, arg.aRow), types.packed));
    Value cLine = b.at(arg.c, b.mul(line, arg.cRow));
    for (int64_t v = 0; v < vectors; ++v)
      cPointers.push_back(b.at(cLine, v * b.width));
  }
  SmallVector<Value> sums(rows * vectors, b.zeros(b.vector));
  sums = emitIf(b.builder, b.loc, arg.continues, sums, [&] {
    SmallVector<Value> loaded;
    for (Value pointer : cPointers)
      loaded.push_back(b.load(pointer));
    return emitIf(b.builder, b.loc, arg.scaled, loaded, [&] {
      SmallVector<Value> scaled;
      for (int64_t i = 0; i < rows; ++i) {
        Value scale = b.broadcast(b.load(b.scalar, b.at(arg.scales, b.add(row, i))));
        for (int64_t v = 0; v < vectors; ++v)
          scaled.push_back(b.create<arith::MulFOp>(loaded[i * vectors + v], scale));
      }
      return scaled;
    });
  });
  Value low = b.larger(b.sub(row, arg.lowSkew), b.index(0));
  Value high = b.add(b.add(row, arg.highSkew), tileRows(types, vectors));
  low = b.divide(low, types.pair);
  high = b.smaller(b.divide(b.larger(b.add(high, types.pair - 1), b.index(0)), types.pair),
                   b.divide(b.add(arg.depth, types.pair - 1), types.pair));
  // Offsets are carried: a product of a counter and a stride in each step would cost as much as an
  // addition.
  sums.push_back(b.mul(low, arg.aStep));
  sums.push_back(b.mul(low, arg.bStep));
  VectorType rightType = b.vectorOf(types.packed, b.width * types.pair);
  sums = emitLoop(b.builder, b.loc, low, high, 1, sums, [&](Value, ValueRange carried) {
    Value aOffset = carried[rows * vectors], bOffset = carried[rows * vectors + 1];
    Value line = b.at(arg.b, bOffset, types.packed);
    SmallVector<Value> right, next;
    for (int64_t v = 0; v < vectors; ++v)
      right.push_back(
          b.load(rightType, b.at(line, b.index(v * b.width * types.pair), types.packed)));
    for (int64_t i = 0; i < rows; ++i) {
      Value place = b.at(aRows[i], aOffset, types.packed), factor;
      if (types.pair == 1) {
        factor = b.broadcast(b.load(b.scalar, place));
      } else {
        Type i32 = b.builder.getI32Type();
        Value pair = b.create<LLVM::LoadOp>(i32, place, 2);
        pair = b.create<vector::BroadcastOp>(b.vectorOf(i32, b.width), pair);
        factor = b.create<vector::BitCastOp>(rightType, pair);
      }
      for (int64_t v = 0; v < vectors; ++v)
        next.push_back(multiplyAdd(b, types, factor, right[v], carried[i * vectors + v]));
    }
    next.push_back(b.add(aOffset, arg.aStep));
    next.push_back(b.add(bOffset, arg.bStep));
    return next;
  });
  for (auto [pointer, sum] : llvm::zip_first(cPointers, sums))
    b.store(sum, pointer);
}

/// All rows of a strip on the matrix unit, 16 at a time.
void emitTileProduct(FloatBuilder& b, const AttentionTypes& types, const ProductArguments& arg,
                     int64_t vectors, bool hasLeftInColumns) {
  constexpr int64_t height = MatrixTile::rows, step = MatrixTile::depth, left = 4, right = 5;
  auto unit = MatrixUnit::create(b, types.unit);
  Type i32 = b.builder.getI32Type();
  Value transposed = hasLeftInColumns ? b.stack(height * height, i32) : Value();
  auto bytes = [&](Value elements, int64_t size) { return b.toI64(b.mul(elements, size)); };
  Value tileRow = bytes(b.index(MatrixTile::rowBytes), 1), cBytes = bytes(arg.cRow, 4);
  auto loadLeft = [&](Value row, Value k) {
    Value place = b.add(b.mul(row, arg.aRow), b.mul(b.divide(k, types.pair), arg.aStep));
    Value from = b.at(arg.a, place, types.packed);
    if (!hasLeftInColumns)
      return unit->load(left, from, bytes(arg.aRow, 2));
    SmallVector<Value> lines;
    for (int64_t i = 0; i < height; ++i)
      lines.push_back(b.create<LLVM::LoadOp>(b.vectorOf(i32, height),
                                             b.at(from, b.mul(arg.aStep, i), types.packed), 2));
    b.transpose(lines);
    for (int64_t i = 0; i < height; ++i)
      b.store(lines[i], b.at(transposed, b.index(i * height), i32));
    return unit->load(left, transposed, tileRow);
  };
  b.loop(b.index(0), arg.rows, height, [&](Value row) {
    Value c = b.at(arg.c, b.mul(row, arg.cRow));
    b.loop(0, height, 1, [&](Value i) {
      Value line = b.add(row, i);
      prefetchRow(b, types, b.at(arg.ahead, b.mul(line, arg.aheadRow), types.element));
      b.when(b.create<arith::AndIOp>(arg.continues, arg.scaled), [&] {
        Value scale = b.broadcast(b.load(b.scalar, b.at(arg.scales, line)));
        for (int64_t v = 0; v < vectors; ++v) {
          Value at = b.at(c, b.add(b.mul(i, arg.cRow), v * b.width));
          b.store(b.create<arith::MulFOp>(b.load(at), scale), at);
        }
      });
    });
    SmallVector<Value> sums;
    for (int64_t v = 0; v < vectors; ++v)
      sums.push_back(unit->zero(v));
    sums = emitIf(b.builder, b.loc, arg.continues, sums, [&] {
      SmallVector<Value> loaded;
      for (int64_t v = 0; v < vectors; ++v)
        loaded.push_back(unit->load(v, b.at(c, v * b.width), cBytes));
      return loaded;
    });
    // Elements along k that count, in whole steps: what else is in them is 0 too, as scores are
    // computed in strips of 32 queries.
    Value low = b.larger(b.sub(row, arg.lowSkew), b.index(0));
    low = b.mul(b.divide(low, step), step);
    Value high = b.larger(b.add(b.add(row, arg.highSkew), height), b.index(0));
    high = b.smaller(b.mul(b.divide(b.add(high, step - 1), step), step), arg.depth);
    sums = emitLoop(b.builder, b.loc, low, high, step, sums, [&](Value k, ValueRange carried) {
      Value factor = loadLeft(row, k);
      Value line = b.at(arg.b, b.mul(b.divide(k, types.pair), arg.bStep), types.packed);
      SmallVector<Value> next;
      for (int64_t v = 0; v < vectors; ++v) {
        Value place = b.at(line, b.index(v * b.width * types.pair), types.packed);
        next.push_back(unit->multiplyAdd(carried[v], factor,
                                         unit->load(right + v % 3, place, bytes(arg.bStep, 2))));
      }
      return next;
    });
    for (int64_t v = 0; v < vectors; ++v)
      unit->store(sums[v], b.at(c, v * b.width), cBytes);
  });
}

/// Loads `lanes` elements of a row as `to` (i1: what a mask adds), the masked-off ones as 0.
Value loadAs(FloatBuilder& b, Type from, FloatType to, Value place, int64_t lanes, Value mask) {
  Type stored = from.isInteger(1) ? b.builder.getI8Type() : from;
  VectorType type = b.vectorOf(stored, lanes);
  Value loaded = mask ? b.loadMasked(type, place, mask) : b.load(type, place);
  if (from == to)
    return loaded;
  if (!from.isInteger(1))
    return b.widen(loaded);
  Value attended = b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, loaded, b.zeros(type));
  return b.select(attended, b.zeros(b.vector), b.numbers(-std::numeric_limits<double>::infinity()));
}

/// A square of rows x chunk (`width` lanes, each an element or a pair) to columns.
void emitTransposedSquare(FloatBuilder& b, Type from, FloatType to, int64_t pair,
                          const TransposeArguments& arg, Value row, Value column, Value mask) {
  Value lastRow = b.sub(arg.rows, b.index(1));
  Type stored = from.isInteger(1) ? b.builder.getI8Type() : from;
  SmallVector<Value> rows;
  for (int64_t i = 0; i < b.width; ++i) {
    Value line = b.mul(b.smaller(b.add(row, i), lastRow), arg.sourceRow);
    Value value =
        loadAs(b, from, to, b.at(arg.source, b.add(line, column), stored), b.width * pair, mask);
    if (pair == 2)
      value = b.create<vector::BitCastOp>(b.vectorOf(b.builder.getI32Type(), b.width), value);
    rows.push_back(value);
  }
  b.transpose(rows);
  Value step = b.divide(column, pair);
  for (int64_t i = 0; i < b.width; ++i) {
    Value slot = b.add(b.mul(b.add(step, i), arg.targetRows), row);
    b.store(rows[i], b.at(arg.target, b.mul(slot, pair), to));
  }
}

/// Calls `body` for whole chunks of `lanes` of the dynamic `columns`, then with a mask.
void forChunks(FloatBuilder& b, Value columns, int64_t lanes,
               function_ref<void(Value column, Value mask)> body) {
  Value rest = b.remainder(columns, lanes), whole = b.sub(columns, rest);
  b.loop(b.index(0), whole, lanes, [&](Value column) { body(column, Value()); });
  b.when(b.less(b.index(0), rest), [&] { body(whole, b.maskBelow(rest, lanes)); });
}

} // namespace

AttentionTypes::AttentionTypes(kernel::AttentionAttr attention, const VectorShape& shape)
    : element(attention.getElement()), scalar(attention.getAccumulation()), packed(scalar), pair(1),
      width(scalar.isF64() ? shape.width / 2 : shape.width), vectors(shape.width >= 16 ? 4 : 2) {
  int64_t mostBytes = 512, columns = std::max(attention.getWidth(), attention.getValueWidth());
  aheadBytes = std::min<int64_t>(columns * element.getIntOrFloatBitWidth() / 8, mostBytes);
  bool wholePairs = attention.getWidth() % 2 == 0 && attention.getValueWidth() % 2 == 0;
  // In pairs either way, which are what the unit takes.
  bool wholeTiles = shape.width == MatrixTile::columns;
  for (int64_t extent : {attention.getQueries(), attention.getKeys(), attention.getWidth(),
                         attention.getValueWidth(), attention.getBlocks().getRows(),
                         attention.getBlocks().getKeys()})
    wholeTiles = wholeTiles && extent % MatrixTile::depth == 0;
  if (element.isBF16() && wholeTiles)
    unit = shape.matrixUnit;
  if (element.isBF16() && (unit != MatrixUnitKind::None || (shape.usesBf16Dot() && wholePairs))) {
    packed = cast<FloatType>(element);
    pair = 2;
  } else if (element.isBF16() && !shape.usesBf16Dot()) {
    element = IntegerType::get(attention.getContext(), 16);
  }
}

void prefetchRow(FloatBuilder& b, const AttentionTypes& types, Value row) {
  for (int64_t byte = 0; byte < types.aheadBytes; byte += cacheLine)
    b.prefetch(b.at(row, b.index(byte), b.builder.getI8Type()));
}

func::FuncOp getAttentionProduct(FloatBuilder& b, const AttentionTypes& types, int64_t vectors,
                                 bool hasLeftInColumns) {
  Type p = b.pointer, n = b.indexType, flag = b.builder.getI1Type();
  bool onTiles = types.unit != MatrixUnitKind::None;
  const char* kind = !onTiles ? "" : hasLeftInColumns ? "_tiles_of_columns" : "_tiles";
  return b.getFunction(join("attention_product_", types.packed, "_", vectors, "_", types.element,
                            types.aheadBytes, kind),
                       {p, n, n, p, n, p, n, n, n, n, n, flag, flag, p, p, n}, [&](Block& block) {
                         auto arguments = argumentsOf<ProductArguments>(block);
                         if (onTiles)
                           return emitTileProduct(b, types, arguments, vectors, hasLeftInColumns);
                         int64_t most = tileRows(types, vectors);
                         Value whole = b.sub(arguments.rows, b.remainder(arguments.rows, most));
                         b.loop(b.index(0), whole, most, [&](Value row) {
                           emitProductRows(b, types, arguments, vectors, most, row);
                         });
                         b.loop(whole, arguments.rows, 1, [&](Value row) {
                           emitProductRows(b, types, arguments, vectors, 1, row);
                         });
                       });
}

func::FuncOp getAttentionTranspose(FloatBuilder& b, const AttentionTypes& types, Type from,
                                   FloatType to) {
  Type p = b.pointer, n = b.indexType;
  int64_t pair = to == types.scalar ? 1 : types.pair;
  return b.getFunction(join("attention_transpose_", from, "_", to), {p, n, n, n, p, n},
                       [&](Block& block) {
                         auto arg = argumentsOf<TransposeArguments>(block);
                         b.loop(b.index(0), arg.targetRows, b.width, [&](Value row) {
                           forChunks(b, arg.columns, b.width * pair, [&](Value column, Value mask) {
                             emitTransposedSquare(b, from, to, pair, arg, row, column, mask);
                           });
                         });
                       });
}

func::FuncOp getAttentionRows(FloatBuilder& b, const AttentionTypes& types) {
  Type p = b.pointer, n = b.indexType;
  return b.getFunction(
      join("attention_rows_", types.element, "_", types.packed), {p, n, n, n, p, n},
      [&](Block& block) {
        auto [source, sourceRow, rows, columns, target, targetStep] =
            argumentsOf<RowsArguments>(block);
        b.loop(b.index(0), rows, types.pair, [&](Value row) {
          Value to = b.at(target, b.mul(b.divide(row, types.pair), targetStep), types.packed);
          Value from = b.at(source, b.mul(row, sourceRow), types.element);
          forChunks(b, columns, b.width, [&](Value column, Value mask) {
            Value value = loadAs(b, types.element, types.packed, b.at(from, column, types.element),
                                 b.width, mask);
            if (types.pair == 2) {
              Value next = b.add(row, 1), exists = b.less(next, rows);
              Value line = b.mul(b.select(exists, next, row), sourceRow);
              Value second =
                  loadAs(b, types.element, types.packed,
                         b.at(source, b.add(line, column), types.element), b.width, mask);
              Value zeros = b.zeros(cast<VectorType>(second.getType()));
              second = b.select(exists, second, zeros);
              value = b.create<vector::InterleaveOp>(value, second);
            }
            b.store(value, b.at(to, b.mul(column, types.pair), types.packed));
          });
        });
      });
}

} // namespace titan::codegen
