#include "compiler/Codegen/cpu/GemmPack.h"

#include "compiler/Codegen/cpu/GemmBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// rows[i][l] -> rows[l][i], by exchanging blocks of 1, 2, 4, ... lanes between pairs of rows.
void transposeSquare(GemmBuilder& g, SmallVectorImpl<Value>& rows) {
  int64_t width = g.width;
  for (int64_t half = 1; half < width; half *= 2) {
    SmallVector<int64_t> low(width), high(width);
    for (int64_t lane = 0; lane < width; ++lane) {
      low[lane] = lane & half ? width + lane - half : lane;
      high[lane] = lane & half ? width + lane : lane + half;
    }
    for (int64_t row = 0; row < width; ++row)
      if ((row & half) == 0) {
        Value a = rows[row], b = rows[row + half];
        rows[row] = vector::ShuffleOp::create(g.builder, g.loc, a, b, low);
        rows[row + half] = vector::ShuffleOp::create(g.builder, g.loc, a, b, high);
      }
  }
}

/// Packs 32-bit lanes of elements of one type.
class Packing {
public:
  Packing(OpBuilder& builder, Location loc, const GemmTile& tile, bool rounds = false)
      : g(builder, loc, tile.width), tile(tile), pairs(tile.lane == GemmLane::Bf16Pair),
        element(rounds  ? g.f32
                : pairs ? g.i16
                        : g.i32) {}

  /// B is stored [n, k]: squares of width x width lanes are transposed in registers, the rest is
  /// copied one by one.
  void packTransposedB(Block& block) {
    Value b = block.getArgument(0), ldb = block.getArgument(1), depth = block.getArgument(2);
    Value columns = block.getArgument(3), panel = block.getArgument(4);
    auto slot = [&](Value k, Value j) {
      return g.at(panel, g.add(g.mul(k, tile.columns()), j), g.i32);
    };
    auto source = [&](Value k, Value j) {
      return g.at(b, g.add(g.mul(j, ldb), pairs ? g.mul(k, 2) : k), element);
    };
    Value complete = pairs ? g.divide(depth, 2) : depth, zero = g.constant(0);
    Value wholeDepth = g.mul(g.divide(complete, g.width), g.width);
    Value wholeColumns = g.mul(g.divide(columns, g.width), g.width);
    g.loop(zero, wholeColumns, g.width, [&](Value j) {
      g.loop(zero, wholeDepth, g.width, [&](Value k) {
        SmallVector<Value> rows;
        for (int64_t i = 0; i < g.width; ++i)
          rows.push_back(loadLanes(source(k, g.add(j, g.constant(i)))));
        transposeSquare(g, rows);
        for (int64_t i = 0; i < g.width; ++i)
          g.store(rows[i], slot(g.add(k, g.constant(i)), j));
      });
    });
    auto copy = [&](Value firstColumn, Value lastColumn, Value firstStep) {
      g.loop(firstColumn, lastColumn, 1, [&](Value j) {
        g.loop(firstStep, complete, 1,
               [&](Value k) { g.store(loadLane(source(k, j)), slot(k, j)); });
        if (pairs)
          ifOdd(depth, [&] {
            g.store(g.pair(narrow(g.load(element, source(complete, j))), g.zero(g.i16)),
                    slot(complete, j));
          });
      });
    };
    copy(zero, wholeColumns, wholeDepth);
    copy(wholeColumns, columns, zero);
    g.loop(columns, g.constant(tile.columns()), 1, [&](Value j) {
      g.loop(zero, lanesOf(depth), 1, [&](Value k) { g.store(g.zero(g.i32), slot(k, j)); });
    });
  }

  /// B is stored [k, n].
  void packPlainB(Block& block) {
    Value b = block.getArgument(0), ldb = block.getArgument(1), depth = block.getArgument(2);
    Value columns = block.getArgument(3), panel = block.getArgument(4);
    SmallVector<Value> masks;
    for (int64_t v = 0; v < tile.vectors; ++v)
      masks.push_back(g.maskBelow(columns, v * g.width));
    g.loop(g.constant(0), lanesOf(depth), 1, [&](Value k) {
      for (int64_t v = 0; v < tile.vectors; ++v) {
        Value column = g.constant(v * g.width);
        Value lanes = lanesAcross(b, ldb, k, column, depth, [&](Value pointer) {
          return narrow(g.loadMasked(g.vectorOf(element), pointer, masks[v]));
        });
        g.store(lanes, g.at(panel, g.add(g.mul(k, tile.columns()), column), g.i32));
      }
    });
  }

  /// A is stored [m, k]: rows are copied.
  void packPlainA(Block& block, const GemmPanelA& layout) {
    Value a = block.getArgument(0), lda = block.getArgument(1), depth = block.getArgument(3);
    Value bytes = g.mul(depth, pairs ? 2 : 4);
    g.loop(g.constant(0), block.getArgument(2), 1, [&](Value row) {
      fetchLine(g.at(a, g.mul(g.add(row, g.constant(linesAhead)), lda), element), bytes);
      Value to = g.at(block.getArgument(4), g.mul(row, layout.row), g.i32);
      LLVM::MemcpyOp::create(g.builder, g.loc, to, g.at(a, g.mul(row, lda), element), bytes,
                             /*isVolatile=*/false);
      if (pairs)
        ifOdd(depth, [&] { g.store(g.zero(g.i16), g.at(to, depth, g.i16)); });
    });
  }

  /// A is stored [k, m]: lines are read whole, and cut into the blocks' rows.
  void packTransposedA(Block& block, const GemmPanelA& layout) {
    Value a = block.getArgument(0), lda = block.getArgument(1), rows = block.getArgument(2);
    Value depth = block.getArgument(3), panel = block.getArgument(4);
    auto whole = [&](int64_t step) { return g.mul(g.divide(rows, step), step); };
    g.loop(g.constant(0), lanesOf(depth), 1, [&](Value k) {
      // Two lines of bf16 make one of lanes.
      for (int64_t part = 0; part < (pairs ? 2 : 1); ++part) {
        Value line = g.add(g.mul(k, pairs ? 2 : 1), g.constant(linesAhead + part));
        fetchLine(g.at(a, g.mul(line, lda), element), g.mul(rows, pairs ? 2 : 4));
      }
      auto pack = [&](Value first, Value last, int64_t count) {
        g.loop(first, last, count, [&](Value row) {
          Type type = count == 1 ? element : VectorType::get({count}, element);
          Value lanes = lanesAcross(a, lda, k, row, depth,
                                    [&](Value pointer) { return g.load(type, pointer); });
          for (int64_t part = 0; part < count; part += tile.rows) {
            Value i = g.add(row, g.constant(part)), inBlock = g.remainder(i, tile.rows);
            Value slot = g.add(g.mul(g.divide(i, tile.rows), layout.block),
                               g.add(g.mul(k, tile.rows), inBlock));
            Value piece = count <= tile.rows
                              ? lanes
                              : vector::ExtractStridedSliceOp::create(
                                    g.builder, g.loc, lanes, ArrayRef<int64_t>{part},
                                    ArrayRef<int64_t>{tile.rows}, ArrayRef<int64_t>{1});
            g.store(piece, g.at(panel, slot, g.i32));
          }
        });
      };
      pack(g.constant(0), whole(g.width), g.width);
      pack(whole(g.width), whole(tile.rows), tile.rows);
      pack(whole(tile.rows), rows, 1);
    });
  }

private:
  /// Rows are short for the machine to see them coming.
  static constexpr int64_t linesAhead = 8;
  void fetchLine(Value pointer, Value bytes) {
    constexpr int64_t cacheLine = 64;
    g.loop(g.constant(0), bytes, cacheLine,
           [&](Value byte) { g.prefetchToRead(g.at(pointer, byte, g.builder.getI8Type())); });
  }
  Value lanesOf(Value depth) { return pairs ? g.divide(g.add(depth, g.constant(1)), 2) : depth; }
  Value isOdd(Value depth) {
    return g.compare(arith::CmpIPredicate::ne, g.remainder(depth, 2), g.constant(0));
  }
  void ifOdd(Value depth, llvm::function_ref<void()> body) {
    emitIf(g.builder, g.loc, isOdd(depth), {}, [&] {
      body();
      return SmallVector<Value>();
    });
  }
  bool rounds() const { return pairs && element == g.f32; }
  /// The 16 bits of a rounded f32; other elements are those bits.
  Value narrow(Value value) {
    if (!rounds())
      return value;
    auto like = [&](Type type) -> Type {
      auto vector = dyn_cast<VectorType>(value.getType());
      return vector ? VectorType::get(vector.getShape(), type) : type;
    };
    Value rounded = arith::TruncFOp::create(g.builder, g.loc, like(g.bf16), value);
    return arith::BitcastOp::create(g.builder, g.loc, like(g.i16), rounded);
  }
  /// `count` lanes of contiguous elements.
  Value loadPairs(Value pointer, int64_t count) {
    Value elements = g.load(VectorType::get({2 * count}, element), pointer);
    return vector::BitCastOp::create(g.builder, g.loc, VectorType::get({count}, g.i32),
                                     narrow(elements));
  }
  Value loadLane(Value pointer) {
    if (rounds())
      return vector::ExtractOp::create(g.builder, g.loc, loadPairs(pointer, 1), 0);
    return LLVM::LoadOp::create(g.builder, g.loc, g.i32, pointer, pairs ? 2 : 4);
  }
  Value loadLanes(Value pointer) {
    if (rounds())
      return loadPairs(pointer, g.width);
    return LLVM::LoadOp::create(g.builder, g.loc, g.vectorOf(g.i32), pointer, pairs ? 2 : 4);
  }

  /// Lane `k` of what lies at `column` and behind it in a matrix stored by k; `load` reads
  /// elements. Behind the last of `depth` elements a pair has zeros.
  Value lanesAcross(Value matrix, Value leading, Value k, Value column, Value depth,
                    llvm::function_ref<Value(Value)> load) {
    auto line = [&](Value row) {
      return load(g.at(matrix, g.add(g.mul(row, leading), column), element));
    };
    if (!pairs)
      return line(k);
    Value low = g.mul(k, 2), next = g.add(low, g.constant(1));
    Value exists = g.compare(arith::CmpIPredicate::ult, next, depth);
    // The first line again where there is no second one, so that nothing is read behind the matrix.
    Value safe = arith::SelectOp::create(g.builder, g.loc, exists, next, low);
    Value high = line(safe);
    high = arith::SelectOp::create(g.builder, g.loc, exists, high, g.zero(high.getType()));
    return g.pair(line(low), high);
  }

  GemmBuilder g;
  const GemmTile& tile;
  bool pairs;
  Type element;
};

} // namespace

GemmPanelA panelOfA(const GemmTile& tile, bool transposed) {
  // A line more than a power of two: neighbours do not fall into one set of the cache.
  constexpr int64_t line = 16;
  if (transposed)
    return {1, tile.rows, gemmDepth * tile.rows + line};
  return {gemmDepth + line, 1, (gemmDepth + line) * tile.rows};
}

func::FuncOp getPackB(OpBuilder& builder, Location loc, const GemmTile& tile, bool transposed,
                      bool rounds) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), i64 = builder.getI64Type();
  std::string name = transposed ? "gemm_pack_b_transposed_" : "gemm_pack_b_";
  // The rows of the register tile play no part.
  GemmTile columns = tile;
  columns.rows = 1;
  return getSharedFunction(builder, loc, name + columns.suffix() + (rounds ? "_rounds" : ""),
                           {pointer, i64, i64, i64, pointer}, [&](Block& block) {
                             Packing packing(builder, loc, tile, rounds);
                             if (transposed)
                               packing.packTransposedB(block);
                             else
                               packing.packPlainB(block);
                           });
}

func::FuncOp getPackA(OpBuilder& builder, Location loc, const GemmTile& tile,
                      const GemmPanelA& layout, bool transposed) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), i64 = builder.getI64Type();
  std::string name = transposed ? "gemm_pack_a_transposed_" : "gemm_pack_a_";
  return getSharedFunction(builder, loc, name + tile.suffix(), {pointer, i64, i64, i64, pointer},
                           [&](Block& block) {
                             Packing packing(builder, loc, tile);
                             if (transposed)
                               packing.packTransposedA(block, layout);
                             else
                               packing.packPlainA(block, layout);
                           });
}

} // namespace titan::codegen
