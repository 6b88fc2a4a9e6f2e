#include "compiler/Codegen/cpu/ObjectFile.h"

#include "compiler/Codegen/cpu/Bf16Rounding.h"
#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/KernelUnits.h"
#include "compiler/Codegen/cpu/LowerToLlvm.h"
#include "compiler/Support/Verification.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <atomic>

using namespace mlir;

namespace titan::codegen {
namespace {

constexpr const char* triple = "x86_64-unknown-linux-gnu";

/// Loop strength reduction takes half of code generation's time and gains nothing on these loops.
/// The switch is a global option of LLVM; what is generated for a card in this process, before or
/// behind, has it as it was.
class WithoutLoopStrengthReduction {
public:
  WithoutLoopStrengthReduction() { set(true); }
  ~WithoutLoopStrengthReduction() { set(false); }
  WithoutLoopStrengthReduction(const WithoutLoopStrengthReduction&) = delete;

private:
  static void set(bool value) {
    auto& options = llvm::cl::getRegisteredOptions();
    auto found = options.find("disable-lsr");
    if (found != options.end())
      static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(value);
  }
};

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
  return machine;
}

bool hasBf16(const TargetInfo& target) { return CpuFeatures(target).has("avx512bf16"); }

/// LLVM's passes down to a file, which are made once: that takes as long as a small kernel's code.
/// Used by one thread at a time.
class FileEmitter {
public:
  static Result<std::unique_ptr<FileEmitter>> create(const TargetInfo& target,
                                                     llvm::CodeGenFileType type) {
    std::unique_ptr<FileEmitter> emitter(new FileEmitter(TITAN_TRY(createMachine(target))));
    if (emitter->machine_->addPassesToEmitFile(emitter->passes_, emitter->stream_, nullptr, type))
      return Error::internal("LLVM cannot emit files for {}", target.cpu);
    return emitter;
  }

  std::string emit(llvm::Module& module) {
    module.setTargetTriple(llvm::Triple(triple));
    module.setDataLayout(machine_->createDataLayout());
    bytes_.clear();
    passes_.run(module);
    return std::string(bytes_.data(), bytes_.size());
  }

private:
  explicit FileEmitter(std::unique_ptr<llvm::TargetMachine> machine)
      : machine_(std::move(machine)) {}

  std::unique_ptr<llvm::TargetMachine> machine_;
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream stream_{bytes_};
  llvm::legacy::PassManager passes_;
};

/// Lowers what is inside `kernels`: its functions, or those of the modules in it.
Status lower(ModuleOp kernels, const TargetInfo& target, bool inUnits) {
  std::string message;
  ScopedDiagnosticHandler handler(kernels.getContext(), [&](Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty())
      message = diagnostic.str();
    return success();
  });
  PassManager passes(kernels.getContext());
  addLowerToLlvmPasses(inUnits ? passes.nest<ModuleOp>() : passes, hasBf16(target));
  if (failed(runVerified(passes, kernels)))
    return Error::internal("kernels do not lower to LLVM: {}", message);
  return {};
}

Result<std::string> emitLowered(ModuleOp kernels, const TargetInfo& target, FileEmitter& emitter) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    return Error::internal("kernels do not translate to LLVM IR");
  if (!hasBf16(target))
    defineBf16Rounding(*module);
  return emitter.emit(*module);
}

void registerTranslations(MLIRContext& context) {
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
}

/// The units by the number of their ops, largest first: one that began last would have the end for
/// itself.
SmallVector<size_t> largestFirst(ArrayRef<KernelUnit> units) {
  SmallVector<size_t> sizes, order;
  for (const KernelUnit& unit : units) {
    size_t ops = 0;
    unit.module->walk([&](Operation*) { ++ops; });
    sizes.push_back(ops);
    order.push_back(order.size());
  }
  llvm::stable_sort(order, [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  return order;
}

/// Every thread of the context takes the largest unit that nobody has.
Status compile(ModuleOp kernels, ArrayRef<KernelUnit> units, const TargetInfo& target,
               MutableArrayRef<std::string*> objects) {
  MLIRContext* context = kernels.getContext();
  WithoutLoopStrengthReduction switched;
  registerTranslations(*context);
  TITAN_TRY(lower(kernels, target, /*inUnits=*/true));
  const size_t threads = std::min<size_t>(context->getNumThreads(), units.size());
  std::vector<std::unique_ptr<FileEmitter>> emitters;
  for (size_t i = 0; i < threads; ++i)
    emitters.push_back(TITAN_TRY(FileEmitter::create(target, llvm::CodeGenFileType::ObjectFile)));
  std::vector<Status> done(units.size());
  const SmallVector<size_t> order = largestFirst(units);
  std::atomic<size_t> next = 0;
  parallelFor(context, 0, threads, [&](size_t thread) {
    for (size_t taken = next++; taken < units.size(); taken = next++) {
      const size_t i = order[taken];
      Result<std::string> object = emitLowered(units[i].module, target, *emitters[thread]);
      if (object.ok())
        *objects[i] = object.take();
      else
        done[i] = object.takeError();
    }
  });
  for (Status& status : done)
    TITAN_TRY(std::move(status));
  return {};
}

} // namespace

Result<std::string> emitKernelObjects(ModuleOp kernels, const TargetInfo& target,
                                      CodeCache* cache) {
  std::vector<KernelUnit> units = splitIntoUnits(kernels);
  std::vector<std::string> objects(units.size()), keys(units.size());
  UnitKeys unitKeys;
  SmallVector<KernelUnit> missing;
  SmallVector<std::string*> places;
  for (auto [unit, object, key] : llvm::zip_equal(units, objects, keys)) {
    if (cache) {
      key = target.cpu + "\n" + target.features + "\n" + unitKeys.of(unit);
      if (std::optional<std::string> found = cache->find(key)) {
        object = std::move(*found);
        unit.module.erase();
        continue;
      }
    }
    missing.push_back(unit);
    places.push_back(&object);
  }
  if (!missing.empty())
    TITAN_TRY(compile(kernels, missing, target, places));
  if (cache) {
    for (std::string* place : places) {
      const auto i = static_cast<size_t>(place - objects.data());
      cache->store(keys[i], objects[i]);
    }
    cache->trim();
  }
  for (auto [unit, object] : llvm::zip_equal(units, objects))
    object = TITAN_TRY(nameKernel(object, unit.symbol));
  return makeArchive(units, objects);
}

Result<std::string> emitKernelAssembly(ModuleOp kernels, const TargetInfo& target) {
  registerTranslations(*kernels.getContext());
  WithoutLoopStrengthReduction switched;
  TITAN_TRY(lower(kernels, target, /*inUnits=*/false));
  auto emitter = TITAN_TRY(FileEmitter::create(target, llvm::CodeGenFileType::AssemblyFile));
  return emitLowered(kernels, target, *emitter);
}

} // namespace titan::codegen
