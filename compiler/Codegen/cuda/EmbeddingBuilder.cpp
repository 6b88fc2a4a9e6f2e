#include "compiler/Codegen/cuda/EmbeddingBuilder.h"

#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/kernel/EntryIndex.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

#include <fmt/format.h>

#include <numeric>

using namespace mlir;

namespace titan::codegen::cuda {

Type elementOf(Value buffer) { return cast<ShapedType>(buffer.getType()).getElementType(); }

int64_t bytesOf(Type element) { return llvm::divideCeilSigned(element.getIntOrFloatBitWidth(), 8); }

RowPlan planRow(int64_t width, Type element) {
  constexpr int64_t mostThreads = 128;
  RowPlan plan;
  plan.chunk = std::gcd(widestAccess / bytesOf(element), width);
  plan.chunks = width / plan.chunk;
  plan.blocks = llvm::divideCeilSigned(plan.chunks, mostThreads);
  plan.threads = llvm::alignTo(llvm::divideCeilSigned(plan.chunks, plan.blocks), warpSize);
  return plan;
}

void LaunchSeries::add(int64_t blocks, int64_t threads, EntryOperand::Use use,
                       llvm::function_ref<void(func::FuncOp)> emit) {
  using Use = EntryOperand::Use;
  Entry entry{fmt::format("{}_{}", symbol, count++), blocks, threads, {}, 0};
  for (Value in : call.getIns())
    entry.operands.push_back(wholeOf(in, Use::Read));
  for (auto [number, out] : llvm::enumerate(call.getOuts()))
    entry.operands.push_back(wholeOf(out, number == 0 ? use : Use::Both));
  emit(kernels.add(builder, call.getLoc(), std::move(entry)));
  func::ReturnOp::create(builder, call.getLoc());
}

Value EmbeddingBuilder::word(int64_t value) {
  return create<arith::ConstantOp>(builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value EmbeddingBuilder::zero(Type type) {
  return create<arith::ConstantOp>(builder.getZeroAttr(type));
}

Value EmbeddingBuilder::isSame(Value a, Value b) {
  return create<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b);
}

Value EmbeddingBuilder::isBelow(Value a, Value b) {
  return create<arith::CmpIOp>(arith::CmpIPredicate::ult, a, b);
}

Value EmbeddingBuilder::inverse(Value flag) {
  return create<arith::XOrIOp>(flag, create<arith::ConstantOp>(builder.getBoolAttr(true)));
}

Value EmbeddingBuilder::toIndex(Value number) {
  return create<arith::IndexCastUIOp>(builder.getIndexType(), number);
}

Value EmbeddingBuilder::toWord(Value number) {
  return create<arith::IndexCastUIOp>(builder.getI32Type(), number);
}

void EmbeddingBuilder::when(Value condition, llvm::function_ref<void()> then) {
  emitIf(builder, loc, condition, {}, [&] {
    then();
    return SmallVector<Value>();
  });
}

Value EmbeddingBuilder::at(Value pointer, Type element, Value offset) {
  offset = create<arith::IndexCastOp>(builder.getI64Type(), offset);
  return create<LLVM::GEPOp>(pointer.getType(), element, pointer, LLVM::GEPArg(offset));
}

Value EmbeddingBuilder::load(Type type, Value pointer, int64_t alignment) {
  return create<LLVM::LoadOp>(type, pointer, alignment == 0 ? bytesOf(type) : alignment);
}

void EmbeddingBuilder::store(Value value, Value pointer, int64_t alignment) {
  LLVM::StoreOp::create(builder, loc, value, pointer,
                        alignment == 0 ? bytesOf(value.getType()) : alignment);
}

Value EmbeddingBuilder::entryAt(Value i) {
  auto type = cast<IntegerType>(elementOf(call.getIns()[1]));
  return llvm::TypeSwitch<Attribute, Value>(call.getRoutine())
      .Case<kernel::EmbeddingAttr, kernel::EmbeddingGradAttr>(
          [&](auto routine) { return loadRow(builder, loc, operands[1], i, type, routine); });
}

} // namespace titan::codegen::cuda
