#include "compiler/Codegen/cpu/Bf16Rounding.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

namespace titan::codegen {
namespace {

bool usesBf16(const llvm::Module& module) {
  for (const llvm::Function& function : module)
    for (const llvm::Instruction& instruction : llvm::instructions(function))
      if (instruction.getType()->getScalarType()->isBFloatTy())
        return true;
  return false;
}

} // namespace

void defineBf16Rounding(llvm::Module& module) {
  if (!usesBf16(module))
    return;
  llvm::IRBuilder<> builder(module.getContext());
  auto* type = llvm::FunctionType::get(builder.getBFloatTy(), {builder.getFloatTy()}, false);
  auto* function =
      llvm::Function::Create(type, llvm::GlobalValue::WeakODRLinkage, "__truncsfbf2", module);
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  builder.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", function));
  llvm::Value* value = function->getArg(0);
  llvm::Value* bits = builder.CreateBitCast(value, builder.getInt32Ty());
  // Half a unit of the last place, and one less where that place is even: a tie goes there.
  llvm::Value* isOdd = builder.CreateAnd(builder.CreateLShr(bits, 16), 1);
  llvm::Value* rounded =
      builder.CreateAdd(bits, builder.CreateAdd(isOdd, builder.getInt32(0x7fff)));
  llvm::Value* half = builder.CreateTrunc(builder.CreateLShr(rounded, 16), builder.getInt16Ty());
  half = builder.CreateSelect(builder.CreateFCmpUNO(value, value), builder.getInt16(0x7fc0), half);
  builder.CreateRet(builder.CreateBitCast(half, builder.getBFloatTy()));
}

} // namespace titan::codegen
