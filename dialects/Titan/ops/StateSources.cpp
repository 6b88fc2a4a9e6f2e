#include "dialects/Titan/ops/StateSources.h"

#include "dialects/Titan/ops/OpSupport.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace titan::ir {

namespace {

/// A source with what it leaves out. The checks are those of checkPiece and checkCover of
/// runtime/program/Piece.h, which dialects do not see.
struct FullSource {
  SmallVector<int64_t> at, from, extent, dims;

  FullSource(SourceAttr source, ArrayRef<int64_t> state)
      : at(source.getAt()), from(source.getFrom()), extent(source.getExtent()),
        dims(source.getDims()) {
    if (at.empty())
      at.assign(state.size(), 0);
    if (from.empty())
      from.assign(state.size(), 0);
    if (extent.empty())
      extent.assign(state.begin(), state.end());
    if (dims.empty())
      llvm::append_range(dims, llvm::seq<int64_t>(0, static_cast<int64_t>(state.size())));
  }

  int64_t elements() const {
    int64_t count = 1;
    for (int64_t e : extent)
      count *= e;
    return count;
  }
};

bool isInside(ArrayRef<int64_t> at, ArrayRef<int64_t> extent, ArrayRef<int64_t> shape) {
  for (auto [a, e, s] : llvm::zip_equal(at, extent, shape))
    if (a < 0 || e < 1 || e > s || a > s - e)
      return false;
  return true;
}

bool overlap(const FullSource& a, const FullSource& b) {
  for (size_t d = 0; d < a.at.size(); ++d)
    if (a.at[d] + a.extent[d] <= b.at[d] || b.at[d] + b.extent[d] <= a.at[d])
      return false;
  return true;
}

/// (C4): a box of the state, along different dimensions of the initializer.
LogicalResult verifyBox(StateOp state, SourceAttr source, const FullSource& full) {
  ArrayRef<int64_t> shape = state.getTensorType().getShape();
  if (full.at.size() != shape.size() || full.extent.size() != shape.size() ||
      full.dims.size() != shape.size())
    return state.emitOpError("(C4) ")
           << source << " is no box of " << shape.size() << " dimensions";
  if (!isInside(full.at, full.extent, shape))
    return state.emitOpError("(C4) ") << source << " leaves " << state.getTensorType();
  SmallVector<int64_t> sorted = llvm::to_vector(full.dims);
  llvm::sort(sorted);
  if (!isIncreasingWithin(sorted, static_cast<int64_t>(full.from.size())))
    return state.emitOpError("(C4) dims of ") << source << " are not different dimensions of the "
                                              << full.from.size() << " of the initializer";
  return success();
}

/// (C7): the box lies in the stored tensor.
LogicalResult verifyStored(StateOp state, SourceAttr source, const FullSource& full,
                           ArrayRef<int64_t> stored) {
  SmallVector<int64_t> extent(full.from.size(), 1);
  for (auto [i, d] : llvm::enumerate(full.dims))
    extent[d] = full.extent[i];
  if (extent.size() != stored.size() || !isInside(full.from, extent, stored))
    return state.emitOpError("(C7) ")
           << source << " leaves the stored tensor of [" << stored << "]";
  return success();
}

/// (C5) of one range, a tensor of `shape`.
LogicalResult verifyBytes(StateOp state, StoredRangeAttr range, ArrayRef<int64_t> shape) {
  uint64_t bytes = (state.getTensorType().getElementTypeBitWidth() + 7) / 8;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes))
      return state.emitOpError("(C5) init stores a tensor of [") << shape << "]";
  if (range.getBytes() == bytes)
    return success();
  return state.emitOpError("(C5) init has ")
         << range.getBytes() << " bytes, [" << shape << "] of "
         << state.getTensorType().getElementType() << " needs " << bytes;
}

} // namespace

LogicalResult verifySources(StateOp state) {
  ArrayRef<int64_t> shape = state.getTensorType().getShape();
  SmallVector<SourceAttr> sources;
  if (std::optional<ArrayAttr> list = state.getSources())
    llvm::append_range(sources, list->getAsRange<SourceAttr>());
  llvm::SetVector<StringRef> initializers;
  SmallVector<FullSource> boxes;
  int64_t covered = 0;
  for (SourceAttr source : sources) {
    initializers.insert(source.getInitializer());
    FullSource& box = boxes.emplace_back(source, shape);
    if (failed(verifyBox(state, source, box)))
      return failure();
    covered += box.elements();
    for (const FullSource& other : ArrayRef(boxes).drop_back())
      if (overlap(box, other))
        return state.emitOpError("(C7) ") << source << " overlaps another source";
  }
  if (!sources.empty() && covered != state.getTensorType().getNumElements())
    return state.emitOpError("(C7) sources cover ")
           << covered << " of " << state.getTensorType().getNumElements() << " elements";
  auto file = dyn_cast<FileInitAttr>(state.getInit());
  if (!file)
    return success();
  ArrayRef<StoredRangeAttr> stored = file.getStored();
  size_t expected = std::max<size_t>(initializers.size(), 1);
  if (stored.size() != expected)
    return state.emitOpError("(C5) init stores ")
           << stored.size() << " ranges, the sources name " << expected << " initializers";
  auto shapeOf = [&](StoredRangeAttr range) {
    return range.getShape().empty() ? shape : range.getShape();
  };
  for (StoredRangeAttr range : stored)
    if (failed(verifyBytes(state, range, shapeOf(range))))
      return failure();
  for (auto [source, box] : llvm::zip_equal(sources, boxes)) {
    auto range = llvm::find(initializers, source.getInitializer()) - initializers.begin();
    if (failed(verifyStored(state, source, box, shapeOf(stored[range]))))
      return failure();
  }
  return success();
}

} // namespace titan::ir
