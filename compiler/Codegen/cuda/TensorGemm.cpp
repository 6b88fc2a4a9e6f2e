#include "compiler/Codegen/cuda/TensorGemm.h"

#include "compiler/Codegen/cuda/Fragments.h"
#include "compiler/Codegen/cuda/GemmResult.h"
#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/Loops.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

constexpr int64_t chunk = FragmentTile::chunk, chunkBytes = FragmentTile::chunkBytes,
                  elementBytes = 2;
constexpr int64_t depth = 32;                             ///< terms of a step
constexpr int64_t smallest = fragmentSide, largest = 128; ///< sides of a tile
/// Shared memory that an entry point may have without asking for more.
constexpr int64_t staticShared = 48 * 1024;

int64_t padded(int64_t extent, int64_t tile) { return llvm::divideCeilSigned(extent, tile) * tile; }

/// The largest tile that does at most a quarter more than the smallest would do.
int64_t sideOf(int64_t extent) {
  int64_t side = largest;
  while (side > smallest && 4 * padded(extent, side) > 5 * padded(extent, smallest))
    side /= 2;
  return side;
}

/// Rows of blocks that run one after another down a column of them: what they read of B is then in
/// the second-level cache, and what they read of A, too.
int64_t groupOf(int64_t rows) {
  int64_t group = 8;
  while (rows % group != 0)
    group /= 2;
  return group;
}

/// A factor: element (outer, k) of A or of the transpose of B.
struct Factor {
  Value pointer, firstOuter; ///< of the block
  int64_t outerExtent, leading;
  int64_t alignment; ///< of each line
  FragmentTile tile;
  Value shared;
};

/// What a thread copies of each step: one chunk a turn.
struct Turn {
  Value exists;  ///< null: it does
  Value address; ///< of the chunk of the first step
  Value shared;  ///< of the chunk in the first stage
  Value depth;   ///< the first term of the chunk in its step
  Value bytes;   ///< i32: those inside of the matrix along its columns or rows; null: all
};

class TensorGemm {
public:
  TensorGemm(ThreadBuilder& builder, KernelModule& kernels, kernel::CallOp call,
             ValueRange operands, const TensorGemmPlan& plan)
      : b(builder), call(call), operands(operands), gemm(call.getGemm()), plan(plan),
        thread(number(threadNumber(b.builder, b.loc))), lane(b.rem(thread, warpSize)) {
    place();
    left = factor(0, firstRow, gemm.getM(), gemm.getLda(), gemm.getStrideA(),
                  {plan.tileM, !gemm.getTransposeA(), depth}, kernels);
    right = factor(1, firstColumn, gemm.getN(), gemm.getLdb(), gemm.getStrideB(),
                   {plan.tileN, gemm.getTransposeB(), depth}, kernels);
  }

  void emit() {
    leftTurns = turnsOf(left);
    rightTurns = turnsOf(right);
    Value warp = b.div(thread, warpSize);
    const int64_t along = plan.tileN / plan.warpN;
    warpRow = b.mul(b.div(warp, along), plan.warpM);
    warpColumn = b.mul(b.rem(warp, along), plan.warpN);
    for (int64_t stage = 0; stage + 1 < plan.stages; ++stage)
      prefetch(stage);
    SmallVector<Value> carried(sumCount(), b.f32(0));
    carried.push_back(b.index(0));
    carried = emitLoop(b.builder, b.loc, b.index(0), b.index(steps()), 1, carried,
                       [&](Value step, ValueRange values) { return emitStep(step, values); });
    carried.pop_back();
    writeResults(carried);
  }

private:
  int64_t steps() const { return llvm::divideCeilSigned(gemm.getK(), depth); }
  int64_t wholeSteps() const { return gemm.getK() / depth; }
  int64_t rest() const { return gemm.getK() % depth; }
  int64_t sumCount() const { return plan.warpM * plan.warpN / warpSize; }

  /// An index as i32.
  Value number(Value index) {
    return b.create<arith::IndexCastUIOp>(b.builder.getI32Type(), index);
  }
  Value word(int64_t value) { return b.number(b.builder.getI32Type(), static_cast<double>(value)); }
  Value index(Value word) { return b.create<arith::IndexCastUIOp>(b.builder.getIndexType(), word); }

  void place() {
    const int64_t rows = llvm::divideCeilSigned(gemm.getM(), plan.tileM),
                  columns = llvm::divideCeilSigned(gemm.getN(), plan.tileN), group = groupOf(rows);
    SmallVector<Value> places = splitNumber(b.builder, b.loc, blockNumber(b.builder, b.loc),
                                            {gemm.getBatch(), rows / group, columns, group});
    batch = places[0];
    firstRow = b.mul(b.add(b.mul(places[1], group), places[3]), plan.tileM);
    firstColumn = b.mul(places[2], plan.tileN);
  }

  Factor factor(unsigned in, Value first, int64_t extent, int64_t leading, int64_t stride,
                FragmentTile tile, KernelModule& kernels) {
    Value pointer = b.address(operands[in], bf16(), b.mul(batch, stride));
    const int64_t alignment =
        std::gcd(alignmentOf(call.getIns()[in]), std::gcd(leading, stride) * elementBytes);
    return {pointer,
            first,
            extent,
            leading,
            alignment,
            tile,
            kernels.shared(b.builder, b.loc, plan.stages * tile.bytes())};
  }

  //===--------------------------------------------------------------------===//
  // Copies to shared memory
  //===--------------------------------------------------------------------===//

  /// Lines beyond the matrix repeat its last one: their sums are not written. Terms beyond k are 0
  /// in both factors.
  SmallVector<Turn> turnsOf(const Factor& factor) {
    const FragmentTile& tile = factor.tile;
    const int64_t count = tile.lines() * tile.chunks(), threads = plan.threads();
    const bool ragged = factor.outerExtent % tile.outer != 0;
    SmallVector<Turn> turns;
    for (int64_t first = 0; first < count; first += threads) {
      Turn turn;
      Value number = b.add(thread, first);
      if (count < threads)
        turn.exists = b.isBelow(number, count);
      Value line = b.div(number, tile.chunks()), part = b.rem(number, tile.chunks());
      turn.shared = b.address(factor.shared, b.builder.getI8Type(), tile.offset(b, line, part));
      Value inLine = b.mul(part, chunk);
      turn.depth = tile.alongDepth ? inLine : line;
      Value outer = b.add(factor.firstOuter, index(tile.alongDepth ? line : inLine));
      if (ragged && tile.alongDepth)
        outer = b.smaller(outer, factor.outerExtent - 1);
      if (ragged && !tile.alongDepth)
        turn.bytes = bytesBelow(b, outer, factor.outerExtent);
      Value depthPlace = index(turn.depth);
      Value at = tile.alongDepth ? b.add(b.mul(outer, factor.leading), depthPlace)
                                 : b.add(b.mul(depthPlace, factor.leading), outer);
      turn.address = b.address(factor.pointer, bf16(), at);
      turns.push_back(turn);
    }
    return turns;
  }

  void prefetch(int64_t step) {
    if (step < steps())
      fetch(b.index(step), b.index(step), step >= wholeSteps());
    commitCopies(b);
  }

  void fetch(Value step, Value slot, bool isLast) {
    copy(left, leftTurns, step, slot, isLast);
    copy(right, rightTurns, step, slot, isLast);
  }

  void copy(const Factor& factor, ArrayRef<Turn> turns, Value step, Value slot, bool isLast) {
    const FragmentTile& tile = factor.tile;
    Value along = b.mul(step, depth * (tile.alongDepth ? 1 : factor.leading));
    Value stage = b.mul(slot, tile.bytes());
    for (const Turn& turn : turns) {
      auto copyTurn = [&] {
        Value from = b.address(turn.address, bf16(), along);
        Value to = b.address(turn.shared, b.builder.getI8Type(), stage);
        Value bytes = isLast ? bytesOfLast(tile, turn) : turn.bytes;
        copyChunk(b, to, from, bytes, factor.alignment);
      };
      turn.exists ? b.when(turn.exists, copyTurn) : copyTurn();
    }
  }

  /// Of the last step, which has `rest` terms.
  Value bytesOfLast(const FragmentTile& tile, const Turn& turn) {
    if (tile.alongDepth)
      return bytesBelow(b, index(turn.depth), rest());
    Value all = turn.bytes ? turn.bytes : word(chunkBytes);
    return b.select(b.isBelow(turn.depth, rest()), all, word(0));
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  SmallVector<Value> emitStep(Value step, ValueRange carried) {
    waitForCopies(b, plan.stages - 2);
    emitBarrier(b.builder, b.loc); // the step is there for all, and the one before has been read
    Value slot = carried.back();
    const int64_t ahead = plan.stages - 1;
    Value next = b.add(step, ahead);
    Value before = b.select(b.isBelow(slot, 1), b.index(ahead), b.sub(slot, b.index(1)));
    b.when(b.isBelow(next, wholeSteps()), [&] { fetch(next, before, false); });
    if (rest() != 0)
      b.when(b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, next, b.index(wholeSteps())),
             [&] { fetch(next, before, true); });
    commitCopies(b);
    SmallVector<Value> sums = multiply(slot, carried.drop_back());
    Value behind = b.add(slot, 1);
    sums.push_back(b.select(b.isBelow(behind, plan.stages), behind, b.index(0)));
    return sums;
  }

  SmallVector<Value> fragment(const Factor& factor, Value slot, Value first, int64_t more,
                              int64_t k) {
    const FragmentTile& tile = factor.tile;
    Type byte = b.builder.getI8Type();
    Value ofLane = b.address(factor.shared, byte, tile.laneOffset(b, lane, first, more, k));
    return tile.load(b, b.address(ofLane, byte, b.mul(slot, tile.bytes())));
  }

  /// The sums of a warp: fragments of rows, in each those of 8 columns, in each four.
  SmallVector<Value> multiply(Value slot, ValueRange sums) {
    SmallVector<Value> held(sums);
    const int64_t columns = plan.warpN / productColumns;
    for (int64_t k = 0; k < std::min(depth, gemm.getK()); k += fragmentDepth) {
      SmallVector<SmallVector<Value>> ofRight;
      for (int64_t j = 0; j < plan.warpN; j += fragmentSide)
        ofRight.push_back(fragment(right, slot, warpColumn, j, k));
      for (int64_t i = 0; i < plan.warpM / fragmentSide; ++i) {
        SmallVector<Value> ofLeft = fragment(left, slot, warpRow, i * fragmentSide, k);
        for (int64_t j = 0; j < columns; ++j) {
          MutableArrayRef<Value> four = MutableArrayRef(held).slice(4 * (i * columns + j), 4);
          llvm::copy(multiplyFragments(b, ofLeft, ofRight[j / 2], j % 2, four), four.begin());
        }
      }
    }
    return held;
  }

  /// Two mma beside each other give a lane two columns of each. Neighbouring lanes exchange theirs:
  /// each then has four columns of one, and a row's lanes have all of a sector.
  void writeResults(ValueRange sums) {
    GemmResult result(b, call, operands, batch);
    const int64_t columns = plan.warpN / productColumns;
    Value isOdd = b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, b.rem(lane, 2), word(1));
    Value inPair = b.select(isOdd, word(productColumns), word(0));
    inPair = b.add(inPair, b.mul(b.div(b.rem(lane, 4), 2), 4));
    Value row = b.add(firstRow, index(b.add(warpRow, b.div(lane, 4))));
    Value column = b.add(firstColumn, index(b.add(warpColumn, inPair)));
    for (int64_t i = 0; i < plan.warpM / fragmentSide; ++i)
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t j = 0; j < columns; j += 2) {
          auto ofProduct = [&](int64_t each) {
            return sums.slice(4 * (i * columns + j + each) + 2 * half, 2);
          };
          result.write(b.add(row, i * fragmentSide + 8 * half), b.add(column, j * productColumns),
                       exchange(isOdd, ofProduct(0), ofProduct(1)));
        }
  }

  /// Even lanes keep what they have of the left product, odd ones what they have of the right.
  Value exchange(Value isOdd, ValueRange left, ValueRange right) {
    SmallVector<Value> first, second;
    for (auto [ofLeft, ofRight] : llvm::zip_equal(left, right)) {
      Value given = b.select(isOdd, ofLeft, ofRight);
      Value got = shuffleXor(b.builder, b.loc, given, 1);
      first.push_back(b.select(isOdd, got, ofLeft));
      second.push_back(b.select(isOdd, ofRight, got));
    }
    llvm::append_range(first, second);
    return b.join(first);
  }

  Type bf16() { return b.builder.getBF16Type(); }

  ThreadBuilder& b;
  kernel::CallOp call;
  ValueRange operands;
  kernel::GemmAttr gemm;
  const TensorGemmPlan plan;
  Value thread, lane, batch, firstRow, firstColumn; ///< thread and lane: i32
  Value warpRow, warpColumn;                        ///< of the block's tile (i32)
  Factor left, right;
  SmallVector<Turn> leftTurns, rightTurns;
};

} // namespace

int64_t TensorGemmPlan::blocks(kernel::GemmAttr gemm) const {
  return gemm.getBatch() * llvm::divideCeilSigned(gemm.getM(), tileM) *
         llvm::divideCeilSigned(gemm.getN(), tileN);
}

bool isTensorGemm(kernel::CallOp call) {
  return llvm::all_of(call.getIns().take_front(2), [](Value in) {
    return cast<ShapedType>(in.getType()).getElementType().isBF16();
  });
}

TensorGemmPlan planTensorGemm(kernel::GemmAttr gemm) {
  constexpr int64_t enough = 128, small = 32; // blocks that fill a card; a tile that is not halved
  TensorGemmPlan plan{sideOf(gemm.getM()), sideOf(gemm.getN()), 0, 0, 0};
  while (plan.blocks(gemm) < enough && std::max(plan.tileM, plan.tileN) > small)
    (plan.tileM > plan.tileN ? plan.tileM : plan.tileN) /= 2;
  plan.warpM = plan.tileM == largest && plan.tileN == largest ? 64 : plan.tileM >= 64 ? 32 : 16;
  plan.warpN = plan.tileN >= 64 ? 32 : 16;
  const int64_t stageBytes = (plan.tileM + plan.tileN) * depth * elementBytes;
  const int64_t steps = llvm::divideCeilSigned(gemm.getK(), depth);
  plan.stages = std::min<int64_t>({4, staticShared / stageBytes, std::max<int64_t>(steps, 2)});
  return plan;
}

void emitTensorGemm(ThreadBuilder& builder, KernelModule& kernels, kernel::CallOp call,
                    ValueRange operands, const TensorGemmPlan& plan) {
  TensorGemm(builder, kernels, call, operands, plan).emit();
}

} // namespace titan::codegen::cuda
