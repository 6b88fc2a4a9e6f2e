#include "compiler/Codegen/cpu/GemmTile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// sum + a * b over the elements of each lane.
Value multiplyAdd(KernelBuilder& g, const GemmTile& tile, Value a, Value b, Value sum) {
  if (tile.lane != GemmLane::Bf16Pair)
    return g.create<math::FmaOp>(a, b, sum);
  VectorType pairs = g.vectorOf(g.bf16, 2 * g.width);
  auto toPairs = [&](Value lanes) { return g.create<vector::BitCastOp>(pairs, lanes); };
  StringAttr name = g.builder.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512");
  return LLVM::CallIntrinsicOp::create(g.builder, g.loc, sum.getType(), name,
                                       ValueRange{sum, toPairs(a), toPairs(b)})
      .getResult(0);
}

/// Fetches a row of what the sums are added to, and a piece of the next panel of B.
void fetch(KernelBuilder& g, const TileArguments& arg, const GemmTile& tile, Value row) {
  constexpr int64_t lineBytes = 64;
  Value sums = g.at(arg.from, g.mul(row, arg.fromRow), g.f32);
  Value next = g.at(arg.next, g.mul(row, arg.nextBytes), g.i8);
  for (int64_t byte = 0; byte < tile.fetchedBytes(); byte += lineBytes) {
    g.prefetchToWrite(g.at(sums, byte, g.i8));
    g.prefetchToSecondLevel(g.at(next, byte, g.i8));
  }
}

void emitTile(KernelBuilder& g, const TileArguments& arg, const GemmTile& tile,
              const GemmPanelA& layout) {
  Type lane = tile.lane == GemmLane::Bf16Pair ? g.i32 : g.f32;
  SmallVector<Value> masks;
  for (int64_t v = 0; v < tile.vectors; ++v)
    masks.push_back(g.maskBelow(arg.columns, tile.width, v * tile.width));
  /// Addresses of the tile's vectors, row by row.
  auto vectorsOf = [&](Value matrix, Value leading) {
    SmallVector<Value> pointers;
    for (int64_t i = 0; i < tile.rows; ++i)
      for (int64_t v = 0; v < tile.vectors; ++v)
        pointers.push_back(g.at(g.at(matrix, g.mul(leading, i), g.f32), v * tile.width, g.f32));
    return pointers;
  };
  SmallVector<Value> from = vectorsOf(arg.from, arg.fromRow);
  SmallVector<Value> sums(tile.rows * tile.vectors, g.zeros(g.vectorOf(g.f32)));
  // The chain in one part for each row: fetches are spread over them, because all at once they
  // would fill the queue of misses, and the loads of A wait.
  Value zero = g.index(0), parts = g.index(tile.rows), part = g.divide(arg.depth, tile.rows);
  sums = emitLoop(g.builder, g.loc, zero, parts, 1, sums, [&](Value row, ValueRange before) {
    fetch(g, arg, tile, row);
    Value first = g.mul(row, part);
    Value isLast = g.compare(arith::CmpIPredicate::eq, row, g.index(tile.rows - 1));
    Value last = g.select(isLast, arg.depth, g.add(first, part));
    return emitLoop(g.builder, g.loc, first, last, 1, before, [&](Value k, ValueRange carried) {
      Value aStep = g.at(arg.a, g.mul(k, layout.step), lane);
      Value line = g.at(arg.panel, g.mul(k, tile.columns()), lane);
      SmallVector<Value> b, next;
      for (int64_t v = 0; v < tile.vectors; ++v)
        b.push_back(g.load(g.vectorOf(lane), g.at(line, v * tile.width, lane)));
      for (int64_t i = 0; i < tile.rows; ++i) {
        Value factor = g.broadcast(g.load(lane, g.at(aStep, i * layout.row, lane)));
        for (int64_t v = 0; v < tile.vectors; ++v)
          next.push_back(multiplyAdd(g, tile, factor, b[v], carried[i * tile.vectors + v]));
      }
      return next;
    });
  });
  sums = emitIf(g.builder, g.loc, arg.continues, sums, [&] {
    SmallVector<Value> added;
    for (auto [i, pointer] : llvm::enumerate(from)) {
      Value before = g.loadMasked(g.vectorOf(g.f32), pointer, masks[i % tile.vectors]);
      added.push_back(g.create<arith::AddFOp>(before, sums[i]));
    }
    return added;
  });
  // A masked store is slow on some CPUs, whatever its mask is.
  SmallVector<Value> to = vectorsOf(arg.to, arg.toRow);
  Value isWhole = g.compare(arith::CmpIPredicate::eq, arg.columns, g.index(tile.columns()));
  auto store = [&](bool masked) {
    for (auto [i, pointer] : llvm::enumerate(to))
      if (masked)
        g.storeMasked(sums[i], pointer, masks[i % tile.vectors]);
      else
        g.store(sums[i], pointer);
  };
  g.choose(isWhole, [&] { store(false); }, [&] { store(true); });
}

/// As f32; a bf16 is the upper half of one.
Value widened(KernelBuilder& g, Value value) {
  if (!getElementTypeOrSelf(value).isInteger(16))
    return value;
  VectorType bits = g.vectorOf(g.i32);
  Value upper = g.create<arith::ShLIOp>(g.create<arith::ExtUIOp>(bits, value), g.splat(bits, 16));
  return g.create<arith::BitcastOp>(g.vectorOf(g.f32), upper);
}

} // namespace

void emitEpilogue(KernelBuilder& g, const EpilogueArguments& arg, const GemmTile& tile,
                  const GemmEpilogue& epilogue) {
  // As bits: targets without bf16 would store lanes of it one by one, through f32 and back.
  Type element = epilogue.toBf16 ? g.i16 : g.f32;
  SmallVector<Value> masks, shifts;
  for (int64_t v = 0; v < tile.vectors; ++v) {
    masks.push_back(g.maskBelow(arg.columns, tile.width, v * tile.width));
    if (epilogue.bias) {
      Value bias = g.at(arg.bias, v * tile.width, element);
      shifts.push_back(widened(g, g.loadMasked(g.vectorOf(element), bias, masks[v])));
    }
  }
  g.loop(g.index(0), arg.rows, 1, [&](Value row) {
    Value from = g.at(arg.sums, g.mul(row, tile.columns()), g.f32),
          to = g.at(arg.c, g.mul(row, arg.cRow), element);
    for (int64_t v = 0; v < tile.vectors; ++v) {
      Value offset = g.index(v * tile.width);
      Value value = g.load(g.vectorOf(g.f32), g.at(from, offset, g.f32));
      if (epilogue.bias)
        value = g.create<arith::AddFOp>(value, shifts[v]);
      if (epilogue.relu)
        value = g.create<arith::MaximumFOp>(value, g.zeros(value.getType()));
      if (epilogue.toBf16)
        value = g.create<arith::BitcastOp>(g.vectorOf(g.i16),
                                           g.create<arith::TruncFOp>(g.vectorOf(g.bf16), value));
      g.storeMasked(value, g.at(to, offset, element), masks[v]);
    }
  });
}

std::string GemmTile::suffix() const {
  const char* of[] = {"", "_bf16", "_widened"};
  return std::to_string(rows) + "_" + std::to_string(columns()) + of[static_cast<int>(lane)];
}

std::string GemmEpilogue::suffix() const {
  std::string text;
  for (auto [is, what] : {std::pair(bias, "_bias"), {relu, "_relu"}, {toBf16, "_to_bf16"}})
    if (is)
      text += what;
  return text;
}

GemmTile gemmTile(const VectorShape& shape, GemmLane lane, int64_t rows, int64_t columns) {
  // Accumulators must hide the latency of a multiply-add (eight chains) and leave registers for a
  // line of B; a wider tile loads less.
  struct Candidate {
    int64_t rows, vectors;
    double efficiency;
  };
  const MachineModel& m = shape.machine;
  const Candidate wide[] = {
      {8, 3, m.tile8x3}, {4, 4, m.tile4x4}, {8, 2, m.tile8x2}, {8, 1, m.tile8x1}};
  const Candidate narrow[] = {{6, 2, m.tile6x2}, {4, 2, m.tile4x2}, {4, 1, m.tile4x1}};
  GemmTile best;
  double bestCost = 0;
  for (const Candidate& candidate : shape.width >= 16 ? ArrayRef(wide) : ArrayRef(narrow)) {
    GemmTile tile{candidate.rows, candidate.vectors, shape.width, lane};
    // A row on its own takes about as long as four in a full tile.
    double paddedRows = rows / tile.rows * tile.rows + 4.0 * (rows % tile.rows);
    double paddedColumns = llvm::divideCeil(columns, tile.columns()) * tile.columns();
    double cost = paddedRows * paddedColumns / candidate.efficiency;
    if (bestCost == 0 || cost < bestCost) {
      bestCost = cost;
      best = tile;
    }
  }
  return best;
}

func::FuncOp getTileFunction(KernelBuilder& g, const GemmTile& tile, const GemmPanelA& a) {
  Type p = g.pointer, n = g.indexType, flag = g.builder.getI1Type();
  std::string name =
      "gemm_tile_" + tile.suffix() + "_" + std::to_string(a.row) + "_" + std::to_string(a.step);
  return g.getFunction(name, {p, p, p, n, p, n, n, n, flag, p, n}, [&](Block& block) {
    emitTile(g, argumentsOf<TileArguments>(block), tile, a);
  });
}

func::FuncOp getEpilogueFunction(KernelBuilder& g, const GemmTile& tile,
                                 const GemmEpilogue& epilogue) {
  Type p = g.pointer, n = g.indexType;
  std::string name = "gemm_epilogue_" + std::to_string(tile.columns()) + epilogue.suffix();
  return g.getFunction(name, {p, p, n, p, n, n}, [&](Block& block) {
    emitEpilogue(g, argumentsOf<EpilogueArguments>(block), tile, epilogue);
  });
}

} // namespace titan::codegen
