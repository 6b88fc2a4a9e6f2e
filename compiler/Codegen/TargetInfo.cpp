#include "compiler/Codegen/TargetInfo.h"

#include "dialects/Titan/Titan.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace mlir;

namespace titan {
namespace {

constexpr const char* triple = "x86_64-unknown-linux-gnu";

// Instruction sets that code generation chooses by itself where the target has them. Others
// (caches, virtualization, cryptography) appear in no kernel.
constexpr std::string_view instructionSets[] = {
    "avx",        "avx2",        "avx512bf16", "avx512bitalg", "avx512bw",
    "avx512cd",   "avx512dq",    "avx512f",    "avx512fp16",   "avx512ifma",
    "avx512vbmi", "avx512vbmi2", "avx512vl",   "avx512vnni",   "avx512vpopcntdq",
    "avxvnni",    "bmi",         "bmi2",       "f16c",         "fma",
    "gfni",       "lzcnt",       "movbe",      "popcnt",       "sse3",
    "sse4.1",     "sse4.2",      "ssse3",      "xop"};

void initializeTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
}

std::unique_ptr<llvm::MCSubtargetInfo> subtarget(StringRef cpu, StringRef features) {
  initializeTarget();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(llvm::Triple(triple), error);
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target->createMCSubtargetInfo(llvm::Triple(triple), cpu, features));
}

} // namespace

Result<TargetInfo> resolveTarget(std::string_view kind, std::string_view arch) {
  if (kind != "cpu")
    return Error::usage("--target={}: this version compiles for cpu", kind);
  TargetInfo target;
  if (arch != "native") {
    target.cpu = arch;
    if (!subtarget("generic", "")->isCPUStringValid(target.cpu))
      return Error::usage("--arch={}: no such CPU: use native, x86-64-v2, x86-64-v3, x86-64-v4 or "
                          "LLVM's name of one",
                          arch);
    return target;
  }
  target.cpu = llvm::sys::getHostCPUName();
  auto known = subtarget(target.cpu, "");
  std::vector<std::string> differences;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    if (known->checkFeatures(("+" + feature.first()).str()) != feature.second)
      differences.push_back(((feature.second ? "+" : "-") + feature.first()).str());
  llvm::sort(differences);
  target.features = llvm::join(differences, ",");
  return target;
}

FailureOr<TargetInfo> getTarget(ModuleOp module) {
  auto attribute = module->getAttr(ir::tag::target);
  if (!attribute) {
    Result<TargetInfo> native = resolveTarget("cpu", "native");
    return native.take();
  }
  auto dictionary = dyn_cast<DictionaryAttr>(attribute);
  TargetInfo target;
  std::pair<StringRef, std::string*> fields[] = {
      {"kind", &target.kind}, {"cpu", &target.cpu}, {"features", &target.features}};
  for (auto [name, field] : fields) {
    auto value = dictionary ? dictionary.getAs<StringAttr>(name) : StringAttr();
    if (!value)
      return module.emitError("'")
             << ir::tag::target << "' is not {kind, cpu, features} of strings";
    *field = value.getValue();
  }
  if (target.kind != "cpu" || !subtarget("generic", "")->isCPUStringValid(target.cpu))
    return module.emitError("'") << ir::tag::target << "' names " << target.kind << " '"
                                 << target.cpu << "': no such CPU";
  return target;
}

void setTarget(ModuleOp module, const TargetInfo& target) {
  Builder builder(module.getContext());
  module->setAttr(ir::tag::target,
                  builder.getDictionaryAttr(
                      {builder.getNamedAttr("kind", builder.getStringAttr(target.kind)),
                       builder.getNamedAttr("cpu", builder.getStringAttr(target.cpu)),
                       builder.getNamedAttr("features", builder.getStringAttr(target.features))}));
}

std::vector<std::string> requiredFeatures(const TargetInfo& target) {
  auto machine = subtarget(target.cpu, target.features);
  std::vector<std::string> features;
  for (std::string_view feature : instructionSets)
    if (machine->checkFeatures("+" + std::string(feature)))
      features.emplace_back(feature);
  return features;
}

bool hasFeature(const TargetInfo& target, std::string_view feature) {
  return subtarget(target.cpu, target.features)->checkFeatures("+" + std::string(feature));
}

} // namespace titan
