#include "compiler/Codegen/cuda/ThreadMemory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <fmt/format.h>

#include <numeric>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

constexpr int64_t chunk = 8;

int64_t byteWidth(Type element) { return storedType(element).getIntOrFloatBitWidth() / 8; }

/// Bytes from one element of the first dimension to the next.
int64_t rowBytes(Value buffer) {
  auto type = cast<ShapedType>(buffer.getType());
  int64_t bytes = byteWidth(type.getElementType());
  for (int64_t extent : type.getShape().drop_front())
    bytes *= extent;
  return bytes;
}

int64_t alignmentOfOffset(std::optional<int64_t> offset, Value buffer) {
  if (!offset || *offset < 0)
    return byteWidth(cast<ShapedType>(buffer.getType()).getElementType());
  return std::gcd(widestAccess, *offset);
}

int64_t alignmentOfArgument(BlockArgument argument) {
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  IntegerAttr offset;
  if (function)
    offset = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "kernel.offset");
  return alignmentOfOffset(offset ? std::optional(offset.getInt()) : std::nullopt, argument);
}

} // namespace

int64_t alignmentOf(Value operand) {
  if (auto argument = dyn_cast<BlockArgument>(operand))
    return alignmentOfArgument(argument);
  return llvm::TypeSwitch<Operation*, int64_t>(operand.getDefiningOp())
      .Case([&](kernel::BufferOp op) { return alignmentOfOffset(op.getOffset(), operand); })
      .Case([&](kernel::ConstantOp op) { return alignmentOfOffset(op.getOffset(), operand); })
      .Case([](kernel::CastShapeOp op) { return alignmentOf(op.getSource()); })
      .Case<kernel::SliceOp, kernel::RowsOp>(
          [](auto op) { return std::gcd(alignmentOf(op.getSource()), rowBytes(op.getSource())); })
      .Default([&](Operation*) { return alignmentOfOffset(std::nullopt, operand); });
}

ThreadMemory::ThreadMemory(ValueRange operands, ArrayRef<int64_t> alignments, ValueRange scalars)
    : operands_(operands), scalars_(scalars) {
  for (auto [operand, alignment] : llvm::zip_equal(operands, alignments))
    alignments_[operand] = alignment;
}

Value ThreadMemory::scalar(OpBuilder&, Location, unsigned number) { return scalars_[number]; }

unsigned ThreadMemory::alignmentOf(const ElementRun& run) const {
  const int64_t bytes = byteWidth(run.stored);
  if (run.length == 0 || run.stride != 1)
    return bytes;
  const Access& access = run.memory.access;
  int64_t alignment = std::gcd(alignments_.lookup(run.memory.pointer), access.offset * bytes);
  for (auto [dim, stride] : llvm::enumerate(access.strides))
    alignment = std::gcd(alignment, stride * bytes * (dim == run.dim ? chunk : 1));
  return alignment;
}

std::string ThreadMemory::whatNarrows(const ElementRun& run, int64_t wanted) const {
  const int64_t bytes = byteWidth(run.stored);
  const Access& access = run.memory.access;
  if (run.stride != 1)
    return fmt::format("neighbours lie {} bytes apart", run.stride * bytes);
  if (const int64_t address = alignments_.lookup(run.memory.pointer); address < wanted)
    return fmt::format("its address is a multiple of {} bytes", address);
  if (access.offset * bytes % wanted != 0)
    return fmt::format("it begins {} bytes behind its address", access.offset * bytes);
  for (auto [dim, stride] : llvm::enumerate(access.strides))
    if (dim != run.dim && stride * bytes % wanted != 0)
      return fmt::format("its rows lie {} bytes apart", stride * bytes);
  return fmt::format("its chunks lie {} bytes apart", chunk * bytes);
}

/// Of whole chunks: a shorter one ends a row.
void ThreadMemory::noteWidth(const ElementRun& run, int64_t alignment) {
  const auto* operand = llvm::find(operands_, run.memory.pointer);
  const int64_t wanted = std::min(widestAccess, chunk * byteWidth(run.stored));
  if (operand == operands_.end() || run.length != chunk || alignment >= wanted)
    return;
  const auto number = static_cast<unsigned>(operand - operands_.begin());
  if (llvm::none_of(narrow_, [&](const NarrowOperand& known) { return known.number == number; }))
    narrow_.push_back({number, alignment, whatNarrows(run, wanted)});
}

namespace {

Value lanePointer(OpBuilder& builder, Location loc, const ElementRun& run, int64_t lane) {
  if (lane == 0)
    return run.pointer;
  Value distance =
      arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(lane * run.stride));
  return LLVM::GEPOp::create(builder, loc, run.pointer.getType(), run.stored, run.pointer,
                             LLVM::GEPArg(distance));
}

/// Neighbouring lanes. A length that is no power of two is read in several: LLVM would widen it to
/// the next one, beyond the buffer's end.
Value loadNeighbours(OpBuilder& builder, Location loc, const ElementRun& run, int64_t alignment) {
  auto typeOf = [&](int64_t length) { return VectorType::get({length}, run.stored); };
  if (llvm::isPowerOf2_64(run.length))
    return LLVM::LoadOp::create(builder, loc, typeOf(run.length), run.pointer, alignment);
  Value whole = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(typeOf(run.length)));
  for (int64_t lane = 0; lane < run.length;) {
    const auto length = static_cast<int64_t>(llvm::bit_floor<uint64_t>(run.length - lane));
    Value part =
        LLVM::LoadOp::create(builder, loc, typeOf(length), lanePointer(builder, loc, run, lane),
                             std::gcd(alignment, lane * byteWidth(run.stored)));
    whole = vector::InsertStridedSliceOp::create(builder, loc, part, whole, ArrayRef<int64_t>{lane},
                                                 ArrayRef<int64_t>{1});
    lane += length;
  }
  return whole;
}

} // namespace

Value ThreadMemory::load(OpBuilder& builder, Location loc, const ElementRun& run) {
  const unsigned alignment = alignmentOf(run);
  noteWidth(run, alignment);
  if (run.length == 0)
    return LLVM::LoadOp::create(builder, loc, run.stored, run.pointer, alignment);
  if (run.stride == 1)
    return loadNeighbours(builder, loc, run, alignment);
  auto type = VectorType::get({run.length}, run.stored);
  SmallVector<Value> lanes;
  for (int64_t lane = 0; lane < run.length; ++lane)
    lanes.push_back(LLVM::LoadOp::create(builder, loc, run.stored,
                                         lanePointer(builder, loc, run, lane), alignment));
  return vector::FromElementsOp::create(builder, loc, type, lanes);
}

void ThreadMemory::store(OpBuilder& builder, Location loc, const ElementRun& run, Value value) {
  const unsigned alignment = alignmentOf(run);
  noteWidth(run, alignment);
  if (run.length == 0 || run.stride == 1) {
    LLVM::StoreOp::create(builder, loc, value, run.pointer, alignment);
    return;
  }
  for (int64_t lane = 0; lane < run.length; ++lane) {
    Value element = vector::ExtractOp::create(builder, loc, value, ArrayRef<int64_t>{lane});
    LLVM::StoreOp::create(builder, loc, element, lanePointer(builder, loc, run, lane), alignment);
  }
}

} // namespace titan::codegen::cuda
