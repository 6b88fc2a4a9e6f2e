#include "compiler/Codegen/cuda/KeptRow.h"

#include "compiler/Codegen/cuda/SumOrder.h"
#include "compiler/Codegen/kernel/PassOrder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

llvm::DenseSet<Value> sourcesOf(const LoopNest& nest, ArrayRef<Value> roots) {
  llvm::DenseSet<Value> sources;
  for (Value root : roots)
    collectSources(nest, root, sources);
  return sources;
}

/// A row's elements chunk after chunk, each of `chunkLength` places.
Access accessOf(const LoopNest& nest, Type element, ArrayRef<unsigned> inner) {
  Access access{element, 0, {}};
  access.strides.assign(nest.rank(), 0);
  int64_t stride = 1;
  for (unsigned dim : llvm::reverse(inner)) {
    access.strides[dim] = stride;
    const int64_t extent = nest.extents[dim];
    stride *=
        dim == inner.back() ? static_cast<int64_t>(llvm::alignTo(extent, chunkLength)) : extent;
  }
  return access;
}

} // namespace

void KeptRow::choose(ArrayRef<SmallVector<Value>> passes, ArrayRef<unsigned> inner, int64_t chunks,
                     int64_t most) {
  const LoopNest& nest = body.nest;
  SmallVector<llvm::DenseSet<Value>> reads;
  for (const SmallVector<Value>& roots : passes)
    reads.push_back(sourcesOf(nest, roots));
  Block& block = kernel::FusedOp(nest.op).getBlock();
  for (auto [i, in] : llvm::enumerate(nest.ins)) {
    BlockArgument argument = block.getArgument(i);
    const auto times =
        llvm::count_if(reads, [&](const auto& read) { return read.contains(argument); });
    const int64_t bytes = static_cast<int64_t>(llvm::alignTo(
        chunks * chunkLength * storedType(in.element).getIntOrFloatBitWidth() / 8, widestAccess));
    if (!contains(in.dims(), inner.back()) || times < 2 || bytes_ + bytes > most)
      continue;
    auto kept = std::make_unique<Kept>();
    kept->in = argument;
    kept->offset = bytes_;
    kept->memory.access = accessOf(nest, in.element, inner);
    kept_.push_back(std::move(kept));
    bytes_ += bytes;
  }
}

void KeptRow::place(Value base) {
  for (const std::unique_ptr<Kept>& kept : kept_) {
    kept->memory.pointer =
        LLVM::GEPOp::create(body.builder, body.loc, base.getType(), body.builder.getI8Type(), base,
                            LLVM::GEPArg(static_cast<int32_t>(kept->offset)));
    access.setAlignment(kept->memory.pointer, widestAccess);
  }
}

bool KeptRow::isFirstRead(const Kept& kept, const llvm::DenseSet<Value>& sources) const {
  return !kept.isKept && sources.contains(kept.in);
}

void KeptRow::keep(ArrayRef<Value> roots) {
  const llvm::DenseSet<Value> sources = sourcesOf(body.nest, roots);
  for (const std::unique_ptr<Kept>& kept : kept_)
    if (isFirstRead(*kept, sources))
      body.store(kept->memory, body.getLanes(kept->in));
}

void KeptRow::passed(ArrayRef<Value> roots) {
  const llvm::DenseSet<Value> sources = sourcesOf(body.nest, roots);
  for (const std::unique_ptr<Kept>& kept : kept_)
    if (isFirstRead(*kept, sources)) {
      body.setMemory(kept->in, &kept->memory);
      kept->isKept = true;
    }
}

void KeptRow::end() {
  for (const std::unique_ptr<Kept>& kept : kept_) {
    body.setMemory(kept->in, nullptr);
    kept->isKept = false;
  }
}

} // namespace titan::codegen::cuda
