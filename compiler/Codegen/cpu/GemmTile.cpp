#include "compiler/Codegen/cpu/GemmTile.h"

#include "compiler/Codegen/cpu/GemmBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// One lane's bits of a pair as two f32 vectors: bf16 is the upper half of f32.
std::pair<Value, Value> unpack(GemmBuilder& g, Value pairs) {
  auto constant = [&](int32_t value) {
    return g.broadcast(
        arith::ConstantOp::create(g.builder, g.loc, g.builder.getI32IntegerAttr(value)), g.width);
  };
  Value low = arith::ShLIOp::create(g.builder, g.loc, pairs, constant(16));
  Value high =
      arith::AndIOp::create(g.builder, g.loc, pairs, constant(static_cast<int32_t>(0xffff0000)));
  auto toFloat = [&](Value bits) -> Value {
    return arith::BitcastOp::create(g.builder, g.loc, g.vectorOf(g.f32), bits);
  };
  return {toFloat(low), toFloat(high)};
}

/// sum + a * b over the elements of each lane.
Value multiplyAdd(GemmBuilder& g, const GemmTile& tile, Value a, Value b, Value sum) {
  if (tile.lane == GemmLane::F32)
    return math::FmaOp::create(g.builder, g.loc, a, b, sum);
  if (tile.hasDot) {
    auto pairs = VectorType::get({2 * g.width}, g.bf16);
    auto toPairs = [&](Value lanes) {
      return vector::BitCastOp::create(g.builder, g.loc, pairs, lanes);
    };
    return LLVM::CallIntrinsicOp::create(
               g.builder, g.loc, sum.getType(),
               g.builder.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
               ValueRange{sum, toPairs(a), toPairs(b)})
        .getResult(0);
  }
  auto [aLow, aHigh] = unpack(g, a);
  auto [bLow, bHigh] = unpack(g, b);
  Value next = math::FmaOp::create(g.builder, g.loc, aHigh, bHigh, sum);
  return math::FmaOp::create(g.builder, g.loc, aLow, bLow, next);
}

/// Fetches a row of what the sums are added to, and a piece of the next panel of B.
void fetch(GemmBuilder& g, Block& block, const GemmTile& tile, Value row) {
  constexpr int64_t lineBytes = 64;
  Value sums = g.at(block.getArgument(2), g.mul(row, block.getArgument(3)), g.f32);
  Value next = g.at(block.getArgument(9), g.mul(row, block.getArgument(10)), g.builder.getI8Type());
  for (int64_t byte = 0; byte < tile.fetchedBytes(); byte += lineBytes) {
    g.prefetch(g.at(sums, g.constant(byte), g.builder.getI8Type()));
    g.prefetchToRead(g.at(next, g.constant(byte), g.builder.getI8Type()));
  }
}

void emitTile(GemmBuilder& g, Block& block, const GemmTile& tile, const GemmPanelA& layout) {
  OpBuilder& builder = g.builder;
  Location loc = g.loc;
  Value a = block.getArgument(0), panel = block.getArgument(1);
  Value columns = block.getArgument(7), continues = block.getArgument(8);
  Type lane = tile.lane == GemmLane::F32 ? g.f32 : g.i32;
  SmallVector<Value> masks;
  for (int64_t v = 0; v < tile.vectors; ++v)
    masks.push_back(g.maskBelow(columns, v * tile.width));
  /// Addresses of the tile's vectors, row by row.
  auto vectorsOf = [&](Value matrix, Value leading) {
    SmallVector<Value> pointers;
    for (int64_t i = 0; i < tile.rows; ++i)
      for (int64_t v = 0; v < tile.vectors; ++v)
        pointers.push_back(
            g.at(g.at(matrix, g.mul(leading, i), g.f32), g.constant(v * tile.width), g.f32));
    return pointers;
  };
  SmallVector<Value> from = vectorsOf(block.getArgument(2), block.getArgument(3));
  SmallVector<Value> sums(tile.rows * tile.vectors, g.zero(g.vectorOf(g.f32)));
  auto toIndex = [&](Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  };
  auto toInteger = [&](Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
  };
  // The chain in one part for each row: fetches are spread over them, because all at once they
  // would fill the queue of misses, and the loads of A wait.
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value parts = arith::ConstantIndexOp::create(builder, loc, tile.rows);
  Value depth = block.getArgument(6), part = g.divide(depth, tile.rows);
  sums = emitLoop(builder, loc, zero, parts, 1, sums, [&](Value index, ValueRange before) {
    Value row = toInteger(index);
    fetch(g, block, tile, row);
    Value first = g.mul(row, part);
    Value isLast = g.compare(arith::CmpIPredicate::eq, row, g.constant(tile.rows - 1));
    Value last = arith::SelectOp::create(builder, loc, isLast, depth, g.add(first, part));
    return emitLoop(
        builder, loc, toIndex(first), toIndex(last), 1, before,
        [&](Value index, ValueRange carried) {
          Value k = toInteger(index);
          Value aStep = g.at(a, g.mul(k, layout.step), lane);
          Value line = g.at(panel, g.mul(k, tile.columns()), lane);
          SmallVector<Value> b, next;
          for (int64_t v = 0; v < tile.vectors; ++v)
            b.push_back(g.load(g.vectorOf(lane), g.at(line, g.constant(v * tile.width), lane)));
          for (int64_t i = 0; i < tile.rows; ++i) {
            Value factor = g.broadcast(g.load(lane, g.at(aStep, g.constant(i * layout.row), lane)),
                                       tile.width);
            for (int64_t v = 0; v < tile.vectors; ++v)
              next.push_back(multiplyAdd(g, tile, factor, b[v], carried[i * tile.vectors + v]));
          }
          return next;
        });
  });
  sums = emitIf(builder, loc, continues, sums, [&] {
    SmallVector<Value> added;
    for (auto [i, pointer] : llvm::enumerate(from)) {
      Value before = g.loadMasked(g.vectorOf(g.f32), pointer, masks[i % tile.vectors]);
      added.push_back(arith::AddFOp::create(builder, loc, before, sums[i]));
    }
    return added;
  });
  for (auto [i, pointer] : llvm::enumerate(vectorsOf(block.getArgument(4), block.getArgument(5))))
    g.storeMasked(sums[i], pointer, masks[i % tile.vectors]);
}

void emitEpilogue(GemmBuilder& g, Block& block, const GemmTile& tile,
                  const GemmEpilogue& epilogue) {
  Value source = block.getArgument(0), c = block.getArgument(1), ldc = block.getArgument(2);
  Value bias = block.getArgument(3);
  // As bits: targets without bf16 would store lanes of it one by one, through f32 and back.
  Type element = epilogue.toBf16 ? g.i16 : g.f32;
  SmallVector<Value> masks, shifts;
  for (int64_t v = 0; v < tile.vectors; ++v) {
    masks.push_back(g.maskBelow(block.getArgument(5), v * tile.width));
    if (epilogue.bias)
      shifts.push_back(
          g.loadMasked(g.vectorOf(g.f32), g.at(bias, g.constant(v * tile.width), g.f32), masks[v]));
  }
  g.loop(g.constant(0), block.getArgument(4), 1, [&](Value row) {
    Value from = g.at(source, g.mul(row, tile.columns()), g.f32),
          to = g.at(c, g.mul(row, ldc), element);
    for (int64_t v = 0; v < tile.vectors; ++v) {
      Value offset = g.constant(v * tile.width);
      Value value = g.load(g.vectorOf(g.f32), g.at(from, offset, g.f32));
      if (epilogue.bias)
        value = arith::AddFOp::create(g.builder, g.loc, value, shifts[v]);
      if (epilogue.relu)
        value = arith::MaximumFOp::create(g.builder, g.loc, value, g.zero(value.getType()));
      if (epilogue.toBf16)
        value = arith::BitcastOp::create(
            g.builder, g.loc, g.vectorOf(g.i16),
            arith::TruncFOp::create(g.builder, g.loc, g.vectorOf(g.bf16), value));
      g.storeMasked(value, g.at(to, offset, element), masks[v]);
    }
  });
}

} // namespace

std::string GemmTile::suffix() const {
  return std::to_string(rows) + "_" + std::to_string(columns()) +
         (lane == GemmLane::F32 ? "" : "_bf16");
}

GemmTile gemmTile(const VectorShape& shape, GemmLane lane, int64_t rows, int64_t columns) {
  // Accumulators must hide the latency of a multiply-add (eight chains) and leave registers for a
  // line of B; a wider tile loads less. Efficiencies measured in the first-level cache.
  struct Candidate {
    int64_t rows, vectors;
    double efficiency;
  };
  constexpr Candidate wide[] = {{8, 3, 1.0}, {4, 4, 0.97}, {8, 2, 0.93}, {8, 1, 0.7}};
  constexpr Candidate narrow[] = {{4, 2, 1.0}, {4, 1, 0.7}};
  GemmTile best;
  double bestCost = 0;
  for (const Candidate& candidate : shape.width >= 16 ? ArrayRef(wide) : ArrayRef(narrow)) {
    GemmTile tile{candidate.rows, candidate.vectors, shape.width, lane, shape.multipliesBf16};
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

func::FuncOp getTileFunction(OpBuilder& builder, Location loc, const GemmTile& tile,
                             const GemmPanelA& a) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), i64 = builder.getI64Type();
  std::string name =
      "gemm_tile_" + tile.suffix() + "_" + std::to_string(a.row) + "_" + std::to_string(a.step);
  return getSharedFunction(
      builder, loc, name,
      {pointer, pointer, pointer, i64, pointer, i64, i64, i64, builder.getI1Type(), pointer, i64},
      [&](Block& block) {
        GemmBuilder body(builder, loc, tile.width);
        emitTile(body, block, tile, a);
      });
}

func::FuncOp getEpilogueFunction(OpBuilder& builder, Location loc, const GemmTile& tile,
                                 const GemmEpilogue& epilogue) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), i64 = builder.getI64Type();
  std::string name = "gemm_epilogue_" + std::to_string(tile.columns());
  for (auto [is, what] :
       {std::pair(epilogue.bias, "_bias"), {epilogue.relu, "_relu"}, {epilogue.toBf16, "_to_bf16"}})
    if (is)
      name += what;
  return getSharedFunction(builder, loc, name, {pointer, pointer, i64, pointer, i64, i64},
                           [&](Block& block) {
                             GemmBuilder body(builder, loc, tile.width);
                             emitEpilogue(body, block, tile, epilogue);
                           });
}

} // namespace titan::codegen
