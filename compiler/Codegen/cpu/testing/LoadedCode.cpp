#include "compiler/Codegen/cpu/testing/LoadedCode.h"

#include "compiler/Codegen/cpu/MatrixUnit.h"
#include "compiler/Codegen/cpu/testing/EmulatedTiles.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

namespace titan::codegen::testing {

namespace {

Error errorOf(llvm::Error error) { return Error::internal("{}", llvm::toString(std::move(error))); }

} // namespace

Result<LoadedCode> LoadedCode::load(const std::string& archive) {
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return errorOf(jit.takeError());
  llvm::orc::JITDylib& dylib = (*jit)->getMainJITDylib();
  llvm::orc::SymbolMap emulation = {
      {(*jit)->mangleAndIntern(emulatedMultiplyAdd),
       {llvm::orc::ExecutorAddr::fromPtr(&titan_emulated_tile_multiply_add),
        llvm::JITSymbolFlags::Exported}}};
  if (llvm::Error error = dylib.define(llvm::orc::absoluteSymbols(std::move(emulation))))
    return errorOf(std::move(error));
  auto objects = llvm::orc::StaticLibraryDefinitionGenerator::Create(
      (*jit)->getObjLinkingLayer(), llvm::MemoryBuffer::getMemBufferCopy(archive, "kernels"));
  if (!objects)
    return errorOf(objects.takeError());
  dylib.addGenerator(std::move(*objects));
  return LoadedCode(std::move(*jit));
}

Result<KernelFunction> LoadedCode::kernel(const std::string& symbol) const {
  auto found = jit_->lookup(symbol);
  if (!found)
    return errorOf(found.takeError());
  return found->toPtr<KernelFunction>();
}

} // namespace titan::codegen::testing
