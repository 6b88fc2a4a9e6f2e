#include "compiler/Codegen/cuda/Fragments.h"

#include "compiler/Codegen/cuda/ThreadMemory.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

/// Chunks of all banks: 128 bytes.
constexpr int64_t bankChunks = 8;
constexpr int64_t elementBytes = 2;

SmallVector<Value> partsOf(ThreadBuilder& b, Value tuple, int64_t count) {
  SmallVector<Value> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(b.create<LLVM::ExtractValueOp>(tuple, ArrayRef<int64_t>{i}));
  return parts;
}

} // namespace

/// Lines that lie in the banks together keep their order; the next ones have another.
Value FragmentTile::offset(ThreadBuilder& b, Value line, Value chunk) const {
  const int64_t together = std::max<int64_t>(1, bankChunks / chunks());
  Value other = b.rem(b.div(line, together), std::min(chunks(), bankChunks));
  Value place = b.create<arith::XOrIOp>(chunk, other);
  return b.mul(b.add(b.mul(line, chunks()), place), chunkBytes);
}

/// Lanes 0 to 7 name the lines of the first quarter, and so on.
Value FragmentTile::laneOffset(ThreadBuilder& b, Value lane, Value first, int64_t more,
                               int64_t k) const {
  Value inEight = b.rem(lane, 8), outerHalf = b.rem(b.div(lane, 8), 2),
        depthHalf = b.div(lane, fragmentSide);
  if (alongDepth)
    return b.add(
        offset(b, b.add(first, b.add(b.mul(outerHalf, 8), inEight)), b.add(depthHalf, k / chunk)),
        more * chunks() * chunkBytes);
  Value line = b.add(b.mul(depthHalf, 8), inEight);
  Value place = b.add(b.div(first, chunk), b.add(outerHalf, more / chunk));
  return b.add(offset(b, line, place), k * chunks() * chunkBytes);
}

SmallVector<Value> FragmentTile::load(ThreadBuilder& b, Value address) const {
  constexpr int64_t count = 4;
  MLIRContext* context = b.builder.getContext();
  SmallVector<Type> words(count, b.builder.getI32Type());
  auto shape = NVVM::LdStMatrixShapeAttr::get(context, 8, 8);
  Value all = b.create<NVVM::LdMatrixOp>(Type(LLVM::LLVMStructType::getLiteral(context, words)),
                                         address, uint32_t{count},
                                         alongDepth ? NVVM::MMALayout::row : NVVM::MMALayout::col,
                                         shape, NVVM::LdStMatrixEltType::B16);
  return partsOf(b, all, count);
}

SmallVector<Value> multiplyFragments(ThreadBuilder& b, ValueRange left, ValueRange right,
                                     int64_t half, ValueRange sums) {
  constexpr int64_t count = 4;
  MLIRContext* context = b.builder.getContext();
  SmallVector<Type> results(count, b.builder.getF32Type());
  SmallVector<Value> columns{right[half], right[half + 2]};
  Value all = b.create<NVVM::MmaOp>(
      Type(LLVM::LLVMStructType::getLiteral(context, results)), left, ValueRange(columns), sums,
      ArrayRef<int64_t>{fragmentSide, productColumns, fragmentDepth}, std::nullopt, std::nullopt,
      std::array{NVVM::MMATypes::bf16, NVVM::MMATypes::bf16},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  return partsOf(b, all, count);
}

/// Whole lines of the second cache go past the first: what a block copies it does not copy again.
static void copyAsync(ThreadBuilder& b, Value to, Value from, int64_t bytes, Value read) {
  auto cache =
      bytes == widestAccess ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(b.builder, b.loc, to, from, static_cast<uint32_t>(bytes), cache, read);
}

static Value word(ThreadBuilder& b, int64_t value) {
  return b.number(b.builder.getI32Type(), static_cast<double>(value));
}

/// No copy moves 2 bytes: elements go through registers.
static void copyElements(ThreadBuilder& b, Value to, Value from, Value read) {
  Type element = b.builder.getBF16Type();
  SmallVector<Value> elements;
  for (int64_t i = 0; i < FragmentTile::chunk; ++i) {
    Value inside =
        read ? b.create<arith::CmpIOp>(arith::CmpIPredicate::ugt, read, word(b, i * elementBytes))
             : Value();
    elements.push_back(b.loadIf(inside, element, b.address(from, element, i)));
  }
  b.store(b.join(elements), to, FragmentTile::chunkBytes);
}

void copyChunk(ThreadBuilder& b, Value to, Value from, Value read, int64_t alignment) {
  if (alignment == elementBytes)
    return copyElements(b, to, from, read);
  const int64_t width = std::min(alignment, FragmentTile::chunkBytes);
  Type byte = b.builder.getI8Type();
  for (int64_t at = 0; at < FragmentTile::chunkBytes; at += width) {
    Value part = read;
    if (read && width < FragmentTile::chunkBytes) {
      Value behind = b.sub(b.create<arith::MaxUIOp>(read, word(b, at)), word(b, at));
      part = b.smaller(behind, width);
    }
    copyAsync(b, b.address(to, byte, at), b.address(from, byte, at), width, part);
  }
}

Value bytesBelow(ThreadBuilder& b, Value at, int64_t extent) {
  Value left = b.smaller(b.sub(b.index(extent), b.smaller(at, extent)), FragmentTile::chunk);
  return b.mul(b.create<arith::IndexCastUIOp>(b.builder.getI32Type(), left), elementBytes);
}

void commitCopies(ThreadBuilder& b) { NVVM::CpAsyncCommitGroupOp::create(b.builder, b.loc); }

void waitForCopies(ThreadBuilder& b, int64_t left) {
  NVVM::CpAsyncWaitGroupOp::create(b.builder, b.loc, static_cast<uint32_t>(left));
}

} // namespace titan::codegen::cuda
