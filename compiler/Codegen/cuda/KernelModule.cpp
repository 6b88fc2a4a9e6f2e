#include "compiler/Codegen/cuda/KernelModule.h"

#include "compiler/Codegen/kernel/BodyEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <fmt/format.h>

using namespace mlir;

namespace titan::codegen::cuda {

EntryOperand wholeOf(Value buffer, EntryOperand::Use use) {
  auto type = cast<ShapedType>(buffer.getType());
  const int64_t bits = storedType(type.getElementType()).getIntOrFloatBitWidth();
  return {use, type.getNumElements() * bits / 8};
}

bool isLaunchOf(const Entry& entry, StringRef symbol) {
  StringRef rest = entry.name;
  return rest.consume_front(symbol) && (rest.empty() || rest.starts_with("_"));
}

std::string describe(const Entry& entry) {
  std::string operands;
  for (const EntryOperand& operand : entry.operands) {
    const char* use = operand.use == EntryOperand::Use::Read    ? "read"
                      : operand.use == EntryOperand::Use::Write ? "write"
                                                                : "both";
    operands += fmt::format("{}{} {}", operands.empty() ? "" : ", ", use, operand.bytes);
  }
  return fmt::format("// titan: {} operands({}) scalars({})", entry.name, operands, entry.scalars);
}

KernelModule::KernelModule(MLIRContext* context) {
  context->loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                       NVVM::NVVMDialect, scf::SCFDialect, vector::VectorDialect>();
  module_ = ModuleOp::create(UnknownLoc::get(context));
}

func::FuncOp KernelModule::add(OpBuilder& builder, Location loc, Entry entry) {
  builder.setInsertionPointToEnd(module_->getBody());
  SmallVector<Type> types(entry.operands.size(),
                          LLVM::LLVMPointerType::get(builder.getContext(), globalSpace));
  types.append(entry.scalars, builder.getI64Type());
  auto function =
      func::FuncOp::create(builder, loc, entry.name, builder.getFunctionType(types, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  entries_.push_back(std::move(entry));
  return function;
}

Value KernelModule::shared(OpBuilder& builder, Location loc, int64_t bytes) {
  OpBuilder inModule = OpBuilder::atBlockBegin(module_->getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), static_cast<uint64_t>(bytes));
  auto array = LLVM::GlobalOp::create(
      inModule, loc, type, /*isConstant=*/false, LLVM::Linkage::Internal,
      fmt::format("{}_shared_{}", entries_.back().name, sharedArrays_++), Attribute(),
      /*alignment=*/16, sharedSpace);
  return LLVM::AddressOfOp::create(builder, loc, array);
}

Value KernelModule::dynamicShared(OpBuilder& builder, Location loc, int64_t bytes) {
  constexpr const char* name = "titan_dynamic_shared"; // one address for all entry points
  auto array = module_->lookupSymbol<LLVM::GlobalOp>(name);
  if (!array) {
    OpBuilder inModule = OpBuilder::atBlockBegin(module_->getBody());
    array = LLVM::GlobalOp::create(inModule, loc, LLVM::LLVMArrayType::get(builder.getI8Type(), 0),
                                   /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(),
                                   /*alignment=*/16, sharedSpace);
  }
  entries_.back().sharedBytes = bytes;
  return LLVM::AddressOfOp::create(builder, loc, array);
}

template <typename T>
bool KernelModule::set(ArrayRef<std::string> names, T Entry::* member, T value) {
  bool changes = false;
  for (Entry& entry : entries_)
    if (llvm::is_contained(names, entry.name))
      changes |= std::exchange(entry.*member, value) != value;
  return changes;
}

bool KernelModule::keepLoops(ArrayRef<std::string> names) {
  return set(names, &Entry::keepsLoops, true);
}

bool KernelModule::freeRegisters(ArrayRef<std::string> names) {
  return set(names, &Entry::blocksTogether, int64_t(0));
}

} // namespace titan::codegen::cuda
