// The routines that kernel.call calls: what each takes and touches.
#include "dialects/Kernel/Kernel.h"

using namespace mlir;

#include "dialects/Kernel/KernelAttrInterfaces.cpp.inc"

namespace titan::kernel {

namespace {

/// The sum of the digits of `number` times their strides.
int64_t offsetOf(int64_t number, ArrayRef<int64_t> extents, ArrayRef<int64_t> strides) {
  int64_t offset = 0;
  for (size_t d = extents.size(); d-- > 0; number /= extents[d])
    offset += number % extents[d] * strides[d];
  return offset;
}

} // namespace

int64_t PatchesAttr::getLines() const { return ShapedType::getNumElements(getLineExtents()); }

int64_t PatchesAttr::getColumns() const { return ShapedType::getNumElements(getColumnExtents()); }

int64_t PatchesAttr::at(int64_t line, int64_t column) const {
  return getOffset() + offsetOf(line, getLineExtents(), getLineStrides()) +
         offsetOf(column, getColumnExtents(), getColumnStrides());
}

int64_t PatchesAttr::getSpan() const { return at(getLines() - 1, getColumns() - 1) + 1; }

LogicalResult PatchesAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<int64_t> lineExtents, ArrayRef<int64_t> lineStrides,
                                  ArrayRef<int64_t> columnExtents, ArrayRef<int64_t> columnStrides,
                                  int64_t offset) {
  if (lineExtents.empty() || columnExtents.empty() || lineExtents.size() != lineStrides.size() ||
      columnExtents.size() != columnStrides.size())
    return emitError() << "patches have one extent and one stride for each dimension, and one "
                          "dimension or more";
  for (int64_t extent : llvm::concat<const int64_t>(lineExtents, columnExtents))
    if (extent < 1)
      return emitError() << "extents of patches are positive, found " << extent;
  for (int64_t stride : llvm::concat<const int64_t>(lineStrides, columnStrides))
    if (stride < 0)
      return emitError() << "strides of patches are not negative, found " << stride;
  if (columnStrides.back() != 1)
    return emitError() << "neighbouring columns of patches are neighbours in memory, found a "
                          "stride of "
                       << columnStrides.back();
  if (offset < 0)
    return emitError() << "the offset of patches is not negative, found " << offset;
  return success();
}

bool GemmAttr::readsOut(unsigned) const { return getAccumulate(); }

int64_t GemmAttr::getUnits() const {
  return getBatch() * llvm::divideCeilSigned(getM(), getTileM()) *
         llvm::divideCeilSigned(getN(), getTileN());
}

LogicalResult GemmAttr::verifyCall(Operation* op) const {
  auto call = cast<CallOp>(op);
  if (call.getIns().size() != (getBias() ? 3u : 2u) || call.getOuts().size() != 1 ||
      !call.getScalars().empty())
    return call.emitOpError("(C1) takes A, B") << (getBias() ? ", bias" : "") << " and one out";
  for (int64_t extent : {getBatch(), getM(), getN(), getK(), getTileM(), getTileN()})
    if (extent < 1)
      return call.emitOpError("(C3) extents and tiles are positive, found ") << extent;
  struct Matrix {
    StringRef name;
    Value value;
    int64_t rows, columns, leading, stride;
    PatchesAttr patches = {};
  };
  bool ta = getTransposeA(), tb = getTransposeB();
  if ((ta && getPatchesA()) || (tb && getPatchesB()))
    return call.emitOpError("(C3) a matrix of patches is not transposed");
  Matrix matrices[] = {{"A", call.getIns()[0], ta ? getK() : getM(), ta ? getM() : getK(), getLda(),
                        getStrideA(), getPatchesA()},
                       {"B", call.getIns()[1], tb ? getN() : getK(), tb ? getK() : getN(), getLdb(),
                        getStrideB(), getPatchesB()},
                       {"C", call.getOuts()[0], getM(), getN(), getLdc(), getStrideC()}};
  for (const Matrix& matrix : matrices) {
    PatchesAttr patches = matrix.patches;
    if (patches && (patches.getLines() != matrix.rows || patches.getColumns() != matrix.columns))
      return call.emitOpError("(C3) ")
             << matrix.name << " has " << patches.getLines() << " x " << patches.getColumns()
             << " elements of patches, not " << matrix.rows << " x " << matrix.columns;
    if (!patches && matrix.leading < matrix.columns)
      return call.emitOpError("(C3) leading dimension ")
             << matrix.leading << " of " << matrix.name << " is below its row length "
             << matrix.columns;
    int64_t ofOne =
        patches ? patches.getSpan() : (matrix.rows - 1) * matrix.leading + matrix.columns;
    int64_t touched = (getBatch() - 1) * matrix.stride + ofOne;
    int64_t held = cast<ShapedType>(matrix.value.getType()).getNumElements();
    if (touched > held)
      return call.emitOpError("(C1) touches ")
             << touched << " elements of " << matrix.name << ", which has " << held;
  }
  if (!getBias())
    return success();
  auto bias = cast<ShapedType>(call.getIns()[2].getType());
  Type element = cast<ShapedType>(call.getOuts()[0].getType()).getElementType();
  if (bias.getElementType() != element)
    return call.emitOpError("(C1) adds a bias of ")
           << bias.getElementType() << " where C has " << element;
  return success();
}

namespace {

/// What both directions of an embedding share: two ins, the second of indices, and outs, of which
/// the first is large enough.
template <typename Routine>
LogicalResult verifyEmbedding(CallOp call, Routine routine, int64_t inRows, int64_t outRows,
                              size_t outs = 1) {
  if (call.getIns().size() != 2 || call.getOuts().size() != outs || !call.getScalars().empty())
    return call.emitOpError("(C1) takes two ins, the second of indices, and ")
           << (outs == 1 ? "one out" : "outs for the sums, an order and sums of tiles");
  for (int64_t extent : {routine.getRows(), routine.getEntries(), routine.getWidth(),
                         routine.getOuter(), routine.getInner()})
    if (extent < 1)
      return call.emitOpError("(C3) extents are positive, found ") << extent;
  auto typeOf = [](Value value) { return cast<ShapedType>(value.getType()); };
  if (!isa<IntegerType>(typeOf(call.getIns()[1]).getElementType()))
    return call.emitOpError("(C1) indices are integers, found ") << call.getIns()[1].getType();
  for (auto [value, touched] : {std::pair(call.getIns()[0], inRows * routine.getWidth()),
                                {call.getIns()[1], routine.getAllRows()},
                                {call.getOuts()[0], outRows * routine.getWidth()}})
    if (typeOf(value).getNumElements() < touched)
      return call.emitOpError("(C1) touches ") << touched << " elements of " << value.getType();
  return success();
}

Type elementOf(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }

} // namespace

bool EmbeddingAttr::readsOut(unsigned) const { return false; }

int64_t EmbeddingAttr::getUnits() const { return getAllRows(); }

LogicalResult EmbeddingAttr::verifyCall(Operation* op) const {
  auto call = cast<CallOp>(op);
  if (failed(verifyEmbedding(call, *this, getTableRows(), getAllRows())))
    return failure();
  if (elementOf(call.getIns()[0]) != elementOf(call.getOuts()[0]))
    return call.emitOpError("(C1) table and result have one element type");
  return success();
}

bool EmbeddingGradAttr::readsOut(unsigned out) const { return out == 0 && getAccumulate(); }

int64_t EmbeddingGradAttr::getTiles() const {
  return llvm::divideCeilSigned(getAllRows(), tileRows);
}

int64_t EmbeddingGradAttr::getSortBlocks() const {
  return llvm::divideCeilSigned(getAllRows(), sortRows);
}

int64_t EmbeddingGradAttr::getOrderElements() const {
  return 2 * getAllRows() + getSortBlocks() * digitValues;
}

int64_t EmbeddingGradAttr::getSumElements() const { return 2 * getTiles() * getWidth(); }

int64_t EmbeddingGradAttr::getUnits() const {
  return llvm::divideCeilSigned(getWidth(), getColumns());
}

namespace {

/// Numbers of rows and entries are i32 in the workspace.
LogicalResult verifySorting(CallOp call, EmbeddingGradAttr routine) {
  for (int64_t extent : {routine.getAllRows(), routine.getTableRows()})
    if (extent > std::numeric_limits<int32_t>::max())
      return call.emitOpError("(C3) sorts fewer than 2^31 rows and entries, found ") << extent;
  auto check = [&](Value out, Type element, int64_t elements) -> LogicalResult {
    if (elementOf(out) == element && cast<ShapedType>(out.getType()).getNumElements() >= elements)
      return success();
    return call.emitOpError("(C1) has a workspace of ")
           << elements << " " << element << ", found " << out.getType();
  };
  auto outs = call.getOuts();
  if (failed(check(outs[1], IntegerType::get(call.getContext(), 32), routine.getOrderElements())))
    return failure();
  return check(outs[2], elementOf(outs[0]), routine.getSumElements());
}

} // namespace

LogicalResult EmbeddingGradAttr::verifyCall(Operation* op) const {
  auto call = cast<CallOp>(op);
  if (getColumns() < 1)
    return call.emitOpError("(C3) columns of a unit are positive, found ") << getColumns();
  if (getPadding() < -1 || getPadding() >= getTableRows())
    return call.emitOpError("(C1) adds nothing to row ")
           << getPadding() << " of " << getTableRows();
  if (failed(verifyEmbedding(call, *this, getAllRows(), getTableRows(), getSorted() ? 3 : 1)))
    return failure();
  auto from = dyn_cast<FloatType>(elementOf(call.getIns()[0])),
       to = dyn_cast<FloatType>(elementOf(call.getOuts()[0]));
  if (!from || !to || (!to.isF32() && !to.isF64()) || from.getWidth() > to.getWidth())
    return call.emitOpError("(C1) sums floats in f32 or f64, found ")
           << call.getIns()[0].getType() << " to " << call.getOuts()[0].getType();
  return getSorted() ? verifySorting(call, *this) : success();
}

} // namespace titan::kernel
