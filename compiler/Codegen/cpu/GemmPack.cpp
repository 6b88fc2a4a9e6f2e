#include "compiler/Codegen/cpu/GemmPack.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// Packs 32-bit lanes of elements of one type.
class Packing {
public:
  Packing(KernelBuilder& builder, const GemmTile& tile, bool rounds = false)
      : g(builder), tile(tile), pairs(tile.lane == GemmLane::Bf16Pair),
        widens(tile.lane == GemmLane::WidenedBf16), element(rounds            ? g.f32
                                                            : pairs || widens ? g.i16
                                                                              : g.i32) {}

  /// B is stored [n, k]: squares of width x width lanes are transposed in registers, the rest is
  /// copied one by one.
  void packTransposedB(const PackBArguments& arg) {
    auto [b, ldb, depth, columns, panel] = arg;
    auto slot = [&](Value k, Value j) {
      return g.at(panel, g.add(g.mul(k, tile.columns()), j), g.i32);
    };
    auto source = [&](Value k, Value j) {
      return g.at(b, g.add(g.mul(j, ldb), pairs ? g.mul(k, 2) : k), element);
    };
    Value complete = completeLanes(depth), zero = g.index(0);
    Value wholeDepth = g.mul(g.divide(complete, g.width), g.width);
    Value wholeColumns = g.mul(g.divide(columns, g.width), g.width);
    g.loop(zero, wholeColumns, g.width, [&](Value j) {
      g.loop(zero, wholeDepth, g.width, [&](Value k) {
        SmallVector<Value> rows;
        for (int64_t i = 0; i < g.width; ++i)
          rows.push_back(loadLanes(source(k, g.add(j, i))));
        g.transpose(rows);
        for (int64_t i = 0; i < g.width; ++i)
          g.store(rows[i], slot(g.add(k, i), j));
      });
    });
    auto copy = [&](Value firstColumn, Value lastColumn, Value firstStep) {
      g.loop(firstColumn, lastColumn, 1, [&](Value j) {
        g.loop(firstStep, complete, 1,
               [&](Value k) { g.store(loadLane(source(widens ? partner(k) : k, j)), slot(k, j)); });
        if (pairs || widens)
          ifOdd(depth, [&] {
            storeLast(narrow(g.load(element, source(complete, j))),
                      [&](int64_t lane) { return slot(g.add(complete, lane), j); });
          });
      });
    };
    copy(zero, wholeColumns, wholeDepth);
    copy(wholeColumns, columns, zero);
    g.loop(columns, g.index(tile.columns()), 1, [&](Value j) {
      g.loop(zero, lanesOf(depth), 1, [&](Value k) { g.store(g.zeros(g.i32), slot(k, j)); });
    });
  }

  /// B is stored [k, n].
  void packPlainB(const PackBArguments& arg) {
    auto [b, ldb, depth, columns, panel] = arg;
    SmallVector<Value> masks;
    for (int64_t v = 0; v < tile.vectors; ++v)
      masks.push_back(g.maskBelow(columns, g.width, v * g.width));
    g.loop(g.index(0), lanesOf(depth), 1, [&](Value k) {
      for (int64_t v = 0; v < tile.vectors; ++v) {
        Value column = g.index(v * g.width);
        Value lanes = lanesAcross(k, depth, [&](Value line) {
          Value from = g.at(b, g.add(g.mul(line, ldb), column), element);
          return narrow(g.loadMasked(g.vectorOf(element), from, masks[v]));
        });
        g.store(lanes, g.at(panel, g.add(g.mul(k, tile.columns()), column), g.i32));
      }
    });
  }

  /// Line k of B begins at places[k].
  void packLines(const PackLinesArguments& arg) {
    auto [b, places, depth, panel] = arg;
    Type i64 = g.builder.getI64Type();
    g.loop(g.index(0), lanesOf(depth), 1, [&](Value k) {
      for (int64_t v = 0; v < tile.vectors; ++v) {
        Value lanes = lanesAcross(k, depth, [&](Value line) {
          Value place = g.toIndex(g.load(i64, g.at(places, line, i64)));
          Value from = g.at(b, g.add(place, v * g.width), element);
          return narrow(g.load(g.vectorOf(element), from));
        });
        g.store(lanes, g.at(panel, g.add(g.mul(k, tile.columns()), v * g.width), g.i32));
      }
    });
  }

  /// A is stored [m, k]: rows are copied.
  void packPlainA(const PackAArguments& arg, const GemmPanelA& layout) {
    auto [a, lda, rows, depth, panel] = arg;
    Value bytes = g.mul(depth, pairs || widens ? 2 : 4);
    g.loop(g.index(0), rows, 1, [&](Value row) {
      fetchLine(g.at(a, g.mul(g.add(row, linesAhead), lda), element), bytes);
      Value to = g.at(panel, g.mul(row, layout.row), g.i32);
      if (widens)
        return widenRow(g.at(a, g.mul(row, lda), element), depth, to);
      LLVM::MemcpyOp::create(g.builder, g.loc, to, g.at(a, g.mul(row, lda), element),
                             g.toI64(bytes),
                             /*isVolatile=*/false);
      if (pairs)
        ifOdd(depth, [&] { g.store(g.zeros(g.i16), g.at(to, depth, g.i16)); });
    });
  }

  /// A is stored [k, m]: lines are read whole, and cut into the blocks' rows.
  void packTransposedA(const PackAArguments& arg, const GemmPanelA& layout) {
    auto [a, lda, rows, depth, panel] = arg;
    auto whole = [&](int64_t step) { return g.mul(g.divide(rows, step), step); };
    g.loop(g.index(0), lanesOf(depth), 1, [&](Value k) {
      // Two lines of bf16 make one of lanes.
      for (int64_t part = 0; part < (pairs ? 2 : 1); ++part) {
        Value line = g.add(g.mul(k, pairs ? 2 : 1), linesAhead + part);
        fetchLine(g.at(a, g.mul(line, lda), element), g.mul(rows, pairs || widens ? 2 : 4));
      }
      auto pack = [&](Value first, Value last, int64_t count) {
        g.loop(first, last, count, [&](Value row) {
          Type type = count == 1 ? element : VectorType::get({count}, element);
          Value lanes = lanesAcross(k, depth, [&](Value line) {
            return g.load(type, g.at(a, g.add(g.mul(line, lda), row), element));
          });
          for (int64_t part = 0; part < count; part += tile.rows) {
            Value i = g.add(row, part), inBlock = g.remainder(i, tile.rows);
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
      // Whole vectors, where they are whole blocks.
      const int64_t most = g.width % tile.rows == 0 ? g.width : tile.rows;
      pack(g.index(0), whole(most), most);
      pack(whole(most), whole(tile.rows), tile.rows);
      pack(whole(tile.rows), rows, 1);
    });
  }

private:
  /// Rows are short for the machine to see them coming.
  static constexpr int64_t linesAhead = 8;
  void fetchLine(Value pointer, Value bytes) {
    constexpr int64_t cacheLine = 64;
    g.loop(g.index(0), bytes, cacheLine,
           [&](Value byte) { g.prefetchToSecondLevel(g.at(pointer, byte, g.i8)); });
  }
  /// Lanes of which all elements exist, and all lanes.
  Value completeLanes(Value depth) {
    return pairs ? g.divide(depth, 2) : widens ? g.mul(g.divide(depth, 2), 2) : depth;
  }
  Value lanesOf(Value depth) { return pairs || widens ? completeLanes(g.add(depth, 1)) : depth; }
  /// The other one of a pair of elements.
  Value partner(Value k) { return g.create<arith::XOrIOp>(k, g.index(1)); }
  Value isOdd(Value depth) {
    return g.compare(arith::CmpIPredicate::ne, g.remainder(depth, 2), g.index(0));
  }
  void ifOdd(Value depth, llvm::function_ref<void()> body) { g.when(isOdd(depth), body); }
  /// Two 16-bit values in one 32-bit lane: `low` comes first in memory. Scalars or vectors.
  Value pair(Value low, Value high) {
    Type type = g.i32;
    Value shift = g.create<arith::ConstantOp>(g.builder.getI32IntegerAttr(16));
    if (auto vector = dyn_cast<VectorType>(low.getType())) {
      type = vector.clone(g.i32);
      shift = g.create<vector::BroadcastOp>(type, shift);
    }
    Value wideLow = g.create<arith::ExtUIOp>(type, low);
    Value wideHigh = g.create<arith::ExtUIOp>(type, high);
    return g.create<arith::OrIOp>(wideLow, g.create<arith::ShLIOp>(wideHigh, shift));
  }
  bool rounds() const { return tile.lane != GemmLane::F32 && element == g.f32; }
  /// bf16 as f32: scalars or vectors of 16 bits.
  Value widen(Value bits) { return pair(g.zeros(bits.getType()), bits); }
  /// The last element along k, which has no partner.
  void storeLast(Value bits, llvm::function_ref<Value(int64_t)> slot) {
    if (pairs)
      return g.store(pair(bits, g.zeros(g.i16)), slot(0));
    g.store(g.zeros(g.i32), slot(0));
    g.store(widen(bits), slot(1));
  }
  void widenRow(Value from, Value depth, Value to) {
    Value complete = completeLanes(depth), whole = g.mul(g.divide(complete, g.width), g.width);
    auto copy = [&](Value first, Value last, int64_t step, llvm::function_ref<Value(Value)> load) {
      g.loop(first, last, step, [&](Value k) { g.store(load(k), g.at(to, k, g.i32)); });
    };
    copy(g.index(0), whole, g.width, [&](Value k) { return loadLanes(g.at(from, k, element)); });
    copy(whole, complete, 1, [&](Value k) { return loadLane(g.at(from, partner(k), element)); });
    ifOdd(depth, [&] {
      storeLast(g.load(element, g.at(from, complete, element)),
                [&](int64_t lane) { return g.at(to, g.add(complete, lane), g.i32); });
    });
  }
  /// The 16 bits of a rounded f32; other elements are those bits.
  Value narrow(Value value) {
    if (!rounds())
      return value;
    auto like = [&](Type type) -> Type {
      auto vector = dyn_cast<VectorType>(value.getType());
      return vector ? VectorType::get(vector.getShape(), type) : type;
    };
    Value rounded = g.create<arith::TruncFOp>(like(g.bf16), value);
    return g.create<arith::BitcastOp>(like(g.i16), rounded);
  }
  /// `count` lanes of contiguous elements.
  Value loadPairs(Value pointer, int64_t count) {
    Value elements = g.load(VectorType::get({2 * count}, element), pointer);
    return g.create<vector::BitCastOp>(VectorType::get({count}, g.i32), narrow(elements));
  }
  Value loadLane(Value pointer) {
    if (widens)
      return widen(narrow(g.load(element, pointer)));
    if (rounds())
      return g.create<vector::ExtractOp>(loadPairs(pointer, 1), 0);
    return g.create<LLVM::LoadOp>(g.i32, pointer, pairs ? 2 : 4);
  }
  Value loadLanes(Value pointer) {
    if (widens) {
      SmallVector<int64_t> swapped;
      for (int64_t lane = 0; lane < g.width; ++lane)
        swapped.push_back(lane ^ 1);
      Value bits = narrow(g.load(g.vectorOf(element), pointer));
      return widen(g.create<vector::ShuffleOp>(bits, bits, swapped));
    }
    if (rounds())
      return loadPairs(pointer, g.width);
    return g.create<LLVM::LoadOp>(g.vectorOf(g.i32), pointer, pairs ? 2 : 4);
  }

  /// Lane `k` of neighbours in a matrix stored by k, of which `line` loads the elements of one.
  /// Behind the last of `depth` elements a pair has zeros.
  Value lanesAcross(Value k, Value depth, llvm::function_ref<Value(Value)> line) {
    if (widens) {
      Value row = partner(k), exists = g.less(row, depth), bits = line(g.select(exists, row, k));
      return widen(g.select(exists, bits, g.zeros(bits.getType())));
    }
    if (!pairs)
      return line(k);
    Value low = g.mul(k, 2), next = g.add(low, 1);
    Value exists = g.compare(arith::CmpIPredicate::ult, next, depth);
    // The first line again where there is no second one, so that nothing is read behind the matrix.
    Value safe = g.select(exists, next, low);
    Value high = line(safe);
    high = g.select(exists, high, g.zeros(high.getType()));
    return pair(line(low), high);
  }

  KernelBuilder& g;
  const GemmTile& tile;
  bool pairs, widens;
  Type element;
};

/// The rows of the register tile play no part where B is packed.
std::string suffixOfColumns(GemmTile tile, bool rounds) {
  tile.rows = 1;
  return tile.suffix() + (rounds ? "_rounds" : "");
}

} // namespace

GemmPanelA panelOfA(const GemmTile& tile, bool transposed) {
  // A line more than a power of two: neighbours do not fall into one set of the cache.
  constexpr int64_t line = 16;
  if (transposed)
    return {1, tile.rows, tile.depth() * tile.rows + line};
  return {tile.depth() + line, 1, (tile.depth() + line) * tile.rows};
}

func::FuncOp getPackB(KernelBuilder& g, const GemmTile& tile, bool transposed, bool rounds) {
  Type p = g.pointer, n = g.indexType;
  std::string name = transposed ? "gemm_pack_b_transposed_" : "gemm_pack_b_";
  return g.getFunction(name + suffixOfColumns(tile, rounds), {p, n, n, n, p}, [&](Block& block) {
    Packing packing(g, tile, rounds);
    auto arguments = argumentsOf<PackBArguments>(block);
    if (transposed)
      packing.packTransposedB(arguments);
    else
      packing.packPlainB(arguments);
  });
}

func::FuncOp getPackLines(KernelBuilder& g, const GemmTile& tile, bool rounds) {
  Type p = g.pointer, n = g.indexType;
  return g.getFunction("gemm_pack_lines_" + suffixOfColumns(tile, rounds), {p, p, n, p},
                       [&](Block& block) {
                         Packing(g, tile, rounds).packLines(argumentsOf<PackLinesArguments>(block));
                       });
}

func::FuncOp getPackA(KernelBuilder& g, const GemmTile& tile, const GemmPanelA& layout,
                      bool transposed) {
  Type p = g.pointer, n = g.indexType;
  std::string name = transposed ? "gemm_pack_a_transposed_" : "gemm_pack_a_";
  return g.getFunction(name + tile.suffix(), {p, n, n, n, p}, [&](Block& block) {
    Packing packing(g, tile);
    auto arguments = argumentsOf<PackAArguments>(block);
    if (transposed)
      packing.packTransposedA(arguments, layout);
    else
      packing.packPlainA(arguments, layout);
  });
}

} // namespace titan::codegen
