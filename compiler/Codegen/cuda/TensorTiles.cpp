#include "compiler/Codegen/cuda/TensorTiles.h"

#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/Loops.h"

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

constexpr int64_t chunk = FragmentTile::chunk, chunkBytes = FragmentTile::chunkBytes;
constexpr int64_t elementBytes = 2, sumBytes = 4;

int64_t wholeFragments(int64_t terms) {
  return llvm::divideCeilSigned(terms, fragmentDepth) * fragmentDepth;
}

} // namespace

TensorTiles::TensorTiles(ThreadBuilder& builder, KernelModule& kernels)
    : TileProduct(builder),
      leftShared(kernels.shared(b.builder, b.loc, side * side * elementBytes)),
      rightShared(kernels.shared(b.builder, b.loc, side * side * elementBytes)),
      exchanged(kernels.shared(b.builder, b.loc, side * line * sumBytes)) {
  constexpr int64_t across = side / warpColumns;
  Value number = word(thread), warp = b.div(number, warpSize);
  lane = b.rem(number, warpSize);
  warpRow = b.mul(b.div(warp, across), warpRows);
  warpColumn = b.mul(b.rem(warp, across), warpColumns);
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// Copies `count` terms from `k` on. What lies beyond the matrix is 0, and so are the terms up to
/// whole fragments.
void TensorTiles::stage(const Lines& lines, Value shared, Value k, int64_t count) {
  const bool alongDepth = tileOf(lines).alongDepth;
  const int64_t terms = wholeFragments(count);
  const int64_t parts = (alongDepth ? terms : side) / chunk; // of a line
  const int64_t all = (alongDepth ? side : terms) * parts;
  for (int64_t first = 0; first < all; first += threads) {
    Value number = b.add(word(thread), first);
    auto copyPart = [&] {
      copy(lines, shared, k, count, b.div(number, parts), b.rem(number, parts));
    };
    all - first < threads ? b.when(b.isBelow(number, all), copyPart) : copyPart();
  }
}

/// Copies chunk `part` of line `inTile` of the tile.
void TensorTiles::copy(const Lines& lines, Value shared, Value k, int64_t count, Value inTile,
                       Value part) {
  const FragmentTile tile = tileOf(lines);
  Value inLine = index(b.mul(part, chunk)), step = tile.alongDepth ? inLine : index(inTile);
  Value outer = b.add(lines.first, tile.alongDepth ? index(inTile) : inLine);
  Value depth = b.add(k, step);
  if (lines.firstDepth)
    depth = b.add(lines.firstDepth, depth);
  Value exists, read; // null: it does; all bytes of it
  if (tile.alongDepth) {
    if (lines.extent % side != 0)
      exists = b.isBelow(outer, lines.extent);
    if (count % fragmentDepth != 0)
      read = bytesBelow(b, step, count);
  } else {
    if (lines.depthExtent % side != 0)
      exists = b.isBelow(depth, lines.depthExtent);
    if (lines.extent % side != 0)
      read = bytesBelow(b, outer, lines.extent);
  }
  auto bytes = [&](int64_t count) {
    return b.number(b.builder.getI32Type(), static_cast<double>(count));
  };
  if (exists)
    read = b.select(exists, read ? read : bytes(chunkBytes), bytes(0));
  Value from = b.address(lines.pointer, lines.element,
                         b.add(b.mul(outer, lines.stride), b.mul(depth, lines.depthStride)));
  copyChunk(b, byteAddress(shared, tile.offset(b, inTile, part)), from, read, lines.alignment);
}

/// What all threads have copied is there for all.
void TensorTiles::arrive() {
  commitCopies(b);
  waitForCopies(b, 0);
  emitBarrier(b.builder, b.loc);
}

/// The tile is the left factor. Its lines are the thread's rows, whatever is summed over.
void TensorTiles::writeTile(ArrayRef<Value> rows, bool sumsOverColumns) {
  heldAlongDepth = sumsOverColumns;
  const FragmentTile tile{side, heldAlongDepth, side};
  Value firstRow = word(row), first = word(column);
  Value inChunk = b.mul(b.rem(first, chunk), elementBytes);
  for (int64_t i = 0; i < cell; ++i) {
    Value offset = b.add(tile.offset(b, b.add(firstRow, i), b.div(first, chunk)), inChunk);
    b.store(b.narrow(rows[i], b.builder.getBF16Type()), byteAddress(leftShared, offset),
            cell * elementBytes);
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Adds the first `terms` terms to the warp's sums: of each 8 columns four.
SmallVector<Value> TensorTiles::addProducts(const FragmentTile& left, const FragmentTile& right,
                                            int64_t terms, ValueRange sums) {
  SmallVector<Value> next(sums);
  auto fragment = [&](const FragmentTile& tile, Value shared, Value first, int64_t more,
                      int64_t k) {
    return tile.load(b, byteAddress(shared, tile.laneOffset(b, lane, first, more, k)));
  };
  for (int64_t k = 0; k < terms; k += fragmentDepth) {
    SmallVector<Value> ofLeft = fragment(left, leftShared, warpRow, 0, k);
    for (int64_t j = 0; j < warpColumns; j += fragmentSide) {
      SmallVector<Value> ofRight = fragment(right, rightShared, warpColumn, j, k);
      for (int64_t half = 0; half < 2; ++half) {
        MutableArrayRef<Value> four =
            MutableArrayRef(next).slice(4 * (j / productColumns + half), 4);
        llvm::copy(multiplyFragments(b, ofLeft, ofRight, half, four), four.begin());
      }
    }
  }
  return next;
}

/// The thread's rows of what warps have summed. `meanwhile` both factors have been read by all.
SmallVector<Value> TensorTiles::exchange(ValueRange sums, llvm::function_ref<void()> meanwhile) {
  Type f32 = b.builder.getF32Type();
  auto place = [&](Value atRow, Value atColumn) {
    return b.address(exchanged, f32, b.add(b.mul(atRow, line), atColumn));
  };
  Value ofLane = place(b.add(warpRow, b.div(lane, 4)), b.add(warpColumn, b.mul(b.rem(lane, 4), 2)));
  for (int64_t j = 0; j < warpColumns / productColumns; ++j)
    for (int64_t half = 0; half < 2; ++half) {
      Value pair = b.join({sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]});
      b.store(pair, b.address(ofLane, f32, 8 * half * line + j * productColumns), 2 * sumBytes);
    }
  emitBarrier(b.builder, b.loc);
  meanwhile();
  Value own = place(word(row), word(column));
  SmallVector<Value> rows;
  for (int64_t i = 0; i < cell; ++i)
    rows.push_back(b.load(run, b.address(own, f32, i * line), widestAccess));
  return rows;
}

SmallVector<Value> TensorTiles::multiply(const Lines& left, const Lines& right, int64_t depth) {
  auto addStep = [&](Value k, int64_t count, ValueRange sums) {
    stage(left, leftShared, k, count);
    stage(right, rightShared, k, count);
    arrive();
    return addProducts(tileOf(left), tileOf(right), wholeFragments(count), sums);
  };
  const int64_t whole = depth / side * side;
  SmallVector<Value> sums = emitLoop(b.builder, b.loc, b.index(0), b.index(whole), side, noSums(),
                                     [&](Value k, ValueRange carried) {
                                       SmallVector<Value> next = addStep(k, side, carried);
                                       if (depth > side) // the next step is copied over this one
                                         emitBarrier(b.builder, b.loc);
                                       return next;
                                     });
  if (whole < depth)
    sums = addStep(b.index(whole), depth - whole, sums);
  return exchange(sums, [] {});
}

/// Of a right factor of `accumulate`, those that may be there.
int64_t TensorTiles::termsOf(const Lines& right) {
  return std::min(side, wholeFragments(right.depthExtent));
}

void TensorTiles::prefetch(const Lines& right) {
  stage(right, rightShared, b.index(0), termsOf(right));
  isPrefetched = true;
}

SmallVector<Value> TensorTiles::accumulate(ArrayRef<Lines> right, Value /*depth*/,
                                           ValueRange sums) {
  const FragmentTile held{side, heldAlongDepth, side};
  SmallVector<Value> next(sums);
  if (!isPrefetched)
    prefetch(right.front());
  for (auto [piece, lines] : llvm::enumerate(right)) {
    arrive();
    SmallVector<Value> rows =
        exchange(addProducts(held, tileOf(lines), termsOf(lines), noSums()), [&, at = piece + 1] {
          if (at < right.size())
            prefetch(right[at]);
        });
    for (int64_t i = 0; i < cell; ++i) {
      Value& sum = next[i * right.size() + piece];
      sum = b.create<arith::AddFOp>(sum, rows[i]);
    }
  }
  isPrefetched = false;
  return next;
}

} // namespace titan::codegen::cuda
