#include "compiler/Codegen/cuda/LowerToPtx.h"

#include "compiler/Codegen/kernel/Passes.h"
#include "compiler/Support/Verification.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

constexpr const char* triple = "nvptx64-nvidia-cuda";
constexpr const char* ptxVersion = "+ptx80"; ///< drivers from CUDA 12.0 on know it

/// Accesses are as wide as they may be when they are emitted. LLVM's vectorizer would fill gaps and
/// read on to the next power of two: bytes that nobody wrote, or beyond a buffer's end. The switch
/// is a global option of LLVM, of this backend alone.
void disableLoadStoreVectorizer() {
  auto& options = llvm::cl::getRegisteredOptions();
  auto found = options.find("disable-nvptx-load-store-vectorizer");
  if (found != options.end())
    static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
}

void registerNvptx() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    disableLoadStoreVectorizer();
  });
}

Result<std::unique_ptr<llvm::TargetMachine>> createMachine(const std::string& arch) {
  registerNvptx();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(llvm::Triple(triple), error);
  if (!target)
    return Error::internal("{}", error);
  llvm::TargetOptions options;
  // A multiplication and an addition are never merged: where an fma is meant, it is written. LLVM
  // then writes .rn, which keeps the assembler from it.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(llvm::Triple(triple), arch, ptxVersion, options, std::nullopt,
                                  std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return Error::internal("LLVM has no target machine for {}", arch);
  return machine;
}

/// Marks the entry points, which the passes have made functions of the LLVM dialect.
void markEntries(KernelModule& kernels) {
  Builder builder(kernels.module().getContext());
  for (const Entry& entry : kernels.entries()) {
    auto function = kernels.module().lookupSymbol<LLVM::LLVMFuncOp>(entry.name);
    function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                      builder.getDenseI32ArrayAttr({static_cast<int32_t>(entry.threads)}));
    const StringRef together = NVVM::NVVMDialect::getMinctasmAttrName();
    if (entry.blocksTogether != 0)
      function->setAttr(together,
                        builder.getI32IntegerAttr(static_cast<int32_t>(entry.blocksTogether)));
    else
      function->removeAttr(together); // of a time before
  }
}

Status lower(KernelModule& kernels) {
  MLIRContext* context = kernels.module().getContext();
  std::string message;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty())
      message = diagnostic.str();
    return success();
  });
  PassManager passes(context);
  addLowerToNvvmPasses(passes);
  if (failed(runVerified(passes, kernels.module())))
    return Error::internal("kernels do not lower to LLVM: {}", message);
  markEntries(kernels);
  return {};
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// The f32 of a vector of bf16 that nothing else reads, or null.
llvm::Value* roundedBy(llvm::Value* value) {
  auto* rounding = dyn_cast<llvm::FPTruncInst>(value);
  const bool isRounded = rounding && rounding->hasOneUse() && rounding->getType()->isVectorTy() &&
                         rounding->getSrcTy()->getScalarType()->isFloatTy() &&
                         rounding->getDestTy()->getScalarType()->isBFloatTy();
  return isRounded ? rounding->getOperand(0) : nullptr;
}

/// `select` between rounded lanes and a constant, without tearing the pairs of lanes apart: by one
/// condition between words, by one of each lane before the lanes are rounded. Null: it is another.
llvm::Value* selectPairs(llvm::SelectInst& select) {
  auto* type = dyn_cast<llvm::FixedVectorType>(select.getType());
  llvm::Value* arms[] = {select.getTrueValue(), select.getFalseValue()};
  if (!type || llvm::none_of(arms, llvm::IsaPred<llvm::Constant>) || llvm::none_of(arms, roundedBy))
    return nullptr;
  llvm::IRBuilder<> builder(&select);
  auto choose = [&](llvm::Value* condition, llvm::function_ref<llvm::Value*(llvm::Value*)> formOf) {
    return builder.CreateSelect(condition, formOf(select.getTrueValue()),
                                formOf(select.getFalseValue()));
  };
  const unsigned lanes = type->getNumElements();
  if (llvm::Value* shared = llvm::getSplatValue(select.getCondition()); shared && lanes % 2 == 0) {
    llvm::Type* words = llvm::FixedVectorType::get(builder.getInt32Ty(), lanes / 2);
    return builder.CreateBitCast(
        choose(shared, [&](llvm::Value* arm) { return builder.CreateBitCast(arm, words); }), type);
  }
  llvm::Type* wide = llvm::FixedVectorType::get(builder.getFloatTy(), lanes);
  llvm::Value* chosen = choose(select.getCondition(), [&](llvm::Value* arm) {
    llvm::Value* rounded = roundedBy(arm);
    return rounded ? rounded : builder.CreateFPExt(arm, wide);
  });
  return builder.CreateFPTrunc(chosen, type);
}

/// Two f32 are rounded to bf16 by one instruction, and LLVM moves the selection of a constant
/// behind the rounding, lane by lane.
void keepPairs(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function)))
      if (auto* select = dyn_cast<llvm::SelectInst>(&instruction))
        if (llvm::Value* pairs = selectPairs(*select)) {
          select->replaceAllUsesWith(pairs);
          select->eraseFromParent();
        }
}

void keepLoops(llvm::Module& module, const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (!entry.keepsLoops)
      continue;
    llvm::Function* function = module.getFunction(entry.name);
    llvm::DominatorTree tree(*function);
    llvm::LoopInfo loops(tree);
    for (llvm::Loop* loop : loops.getLoopsInPreorder())
      loop->setLoopAlreadyUnrolled();
  }
}

/// `text` with the line of describe() before each entry point.
std::string withOperands(std::string_view text, const std::vector<Entry>& entries) {
  std::string result;
  size_t from = 0;
  for (const Entry& entry : entries) {
    const size_t at = text.find(".entry " + entry.name + "(", from);
    const size_t line = text.rfind('\n', at) + 1;
    result.append(text.substr(from, line - from)).append(describe(entry)).append("\n");
    from = line;
  }
  return result.append(text.substr(from));
}

} // namespace

void addLowerToNvvmPasses(OpPassManager& passes) {
  passes.addPass(createExpandMath());
  passes.addPass(createExpandWideMath());
  passes.addPass(createCardForms());
  passes.addPass(createCSEPass());
  passes.addPass(createConvertMathToLLVMPass({.approximateLog1p = false}));
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  // Rounding division of integers has no instruction: it is expanded. Before that the rest is
  // converted, or maximum and minimum would be, too, and lose what max.NaN says of signed zeros.
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(arith::createArithExpandOpsPass({.includeBf16 = false}));
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
}

Result<std::string> emitPtx(KernelModule& kernels, const std::string& arch) {
  MLIRContext* context = kernels.module().getContext();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  registerNVVMDialectTranslation(*context);
  TITAN_TRY(lower(kernels));
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(kernels.module(), llvmContext, "kernels");
  if (!module)
    return Error::internal("kernels do not translate to LLVM IR");
  std::unique_ptr<llvm::TargetMachine> machine = TITAN_TRY(createMachine(arch));
  module->setTargetTriple(llvm::Triple(triple));
  module->setDataLayout(machine->createDataLayout());
  optimize(*module, *machine);
  keepPairs(*module);
  keepLoops(*module, kernels.entries());
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return Error::internal("LLVM cannot emit files for {}", arch);
  passes.run(*module);
  TITAN_TRY(checkPtx({bytes.data(), bytes.size()}));
  return withOperands({bytes.data(), bytes.size()}, kernels.entries());
}

Status checkPtx(std::string_view ptx) {
  // A word is a part of an instruction's name; the f32 operations are whole names.
  constexpr llvm::StringLiteral words[] = {".approx", ".ftz", ".local", "call", "atom", "red"};
  constexpr llvm::StringLiteral contractible[] = {"add.f32", "sub.f32", "mul.f32", "mad.f32",
                                                  "add.f64", "sub.f64", "mul.f64"};
  constexpr llvm::StringLiteral tensorProduct =
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
  SmallVector<StringRef> lines;
  StringRef(ptx.data(), ptx.size()).split(lines, '\n');
  for (StringRef line : lines) {
    StringRef instruction = line.split("//").first.trim();
    if (instruction.starts_with("@"))
      instruction = instruction.split(' ').second.ltrim();
    const StringRef name = instruction.take_until([](char c) { return c == ' ' || c == '\t'; });
    for (StringRef word : words)
      if (word.front() == '.' ? name.contains(word)
                              : name == word || name.starts_with((word + ".").str()))
        return Error::internal("generated PTX has '{}'", line.str());
    const bool isOtherForm =
        ((name.contains("mma") && name != tensorProduct) || name.starts_with("cp.async.bulk") ||
         name.starts_with("cp.async.mbarrier"));
    if (isOtherForm)
      return Error::internal("generated PTX has '{}'", line.str());
    for (StringRef operation : contractible)
      if (name == operation)
        return Error::internal("generated PTX has '{}'", line.str());
  }
  return {};
}

} // namespace titan::codegen::cuda
