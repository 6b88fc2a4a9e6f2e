#include "compiler/Codegen/cpu/ObjectFile.h"

#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/LowerToLlvm.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace titan::codegen {
namespace {

constexpr const char* triple = "x86_64-unknown-linux-gnu";

/// Loop strength reduction takes half of code generation's time and gains nothing on these loops.
/// The switch is a global option of LLVM; nothing else in this process generates code.
void disableLoopStrengthReduction() {
  auto& options = llvm::cl::getRegisteredOptions();
  auto found = options.find("disable-lsr");
  if (found != options.end())
    static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
}

Result<std::unique_ptr<llvm::TargetMachine>> createMachine(const TargetInfo& info) {
  registerCpus();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(llvm::Triple(triple), error);
  if (!target)
    return Error::internal("{}", error);
  llvm::TargetOptions options;
  // A multiplication and an addition are never merged: where an fma is meant, it is written
  // ("fusion does not matter").
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.UniqueSectionNames = false;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      llvm::Triple(triple), info.cpu, info.features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Less));
  if (!machine)
    return Error::internal("LLVM has no target machine for {}", info.cpu);
  disableLoopStrengthReduction();
  return machine;
}

Result<std::string> emitFile(llvm::Module& module, const TargetInfo& info,
                             llvm::CodeGenFileType type) {
  auto machine = TITAN_TRY(createMachine(info));
  module.setTargetTriple(llvm::Triple(triple));
  module.setDataLayout(machine->createDataLayout());
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, type))
    return Error::internal("LLVM cannot emit files for {}", info.cpu);
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

Result<std::unique_ptr<llvm::Module>> translate(ModuleOp kernels, const TargetInfo& target,
                                                llvm::LLVMContext& context) {
  std::string message;
  ScopedDiagnosticHandler handler(kernels.getContext(), [&](Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty())
      message = diagnostic.str();
    return success();
  });
  registerBuiltinDialectTranslation(*kernels.getContext());
  registerLLVMDialectTranslation(*kernels.getContext());
  PassManager passes(kernels.getContext());
  addLowerToLlvmPasses(passes, CpuFeatures(target).has("avx512bf16"));
  if (failed(passes.run(kernels)))
    return Error::internal("kernels do not lower to LLVM: {}", message);
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    return Error::internal("kernels do not translate to LLVM IR: {}", message);
  return module;
}

Result<std::string> emitKernels(ModuleOp kernels, const TargetInfo& target,
                                llvm::CodeGenFileType type) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = TITAN_TRY(translate(kernels, target, context));
  return emitFile(*module, target, type);
}

} // namespace

Result<std::string> emitKernelObject(ModuleOp kernels, const TargetInfo& target) {
  return emitKernels(kernels, target, llvm::CodeGenFileType::ObjectFile);
}

Result<std::string> emitKernelAssembly(ModuleOp kernels, const TargetInfo& target) {
  return emitKernels(kernels, target, llvm::CodeGenFileType::AssemblyFile);
}

} // namespace titan::codegen
