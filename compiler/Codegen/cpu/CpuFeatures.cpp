#include "compiler/Codegen/cpu/CpuFeatures.h"

#include "compiler/Codegen/cpu/CpuClass.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

namespace titan::codegen {
namespace {

using llvm::StringRef;

constexpr const char* triple = "x86_64-unknown-linux-gnu";

// Instruction sets that code generation chooses by itself where the target has them. Others
// (caches, virtualization, cryptography) appear in no kernel.
constexpr std::string_view instructionSets[] = {"amx-bf16",
                                                "amx-tile",
                                                "avx",
                                                "avx2",
                                                "avx512bf16",
                                                "avx512bitalg",
                                                "avx512bw",
                                                "avx512cd",
                                                "avx512dq",
                                                "avx512f",
                                                "avx512fp16",
                                                "avx512ifma",
                                                "avx512vbmi",
                                                "avx512vbmi2",
                                                "avx512vl",
                                                "avx512vnni",
                                                "avx512vpopcntdq",
                                                "avxvnni",
                                                "bmi",
                                                "bmi2",
                                                "f16c",
                                                "fma",
                                                "gfni",
                                                "lzcnt",
                                                "movbe",
                                                "popcnt",
                                                "sse3",
                                                "sse4.1",
                                                "sse4.2",
                                                "ssse3",
                                                "xop"};

std::unique_ptr<llvm::MCSubtargetInfo> subtarget(StringRef cpu, StringRef features) {
  registerCpus();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(llvm::Triple(triple), error);
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target->createMCSubtargetInfo(llvm::Triple(triple), cpu, features));
}

} // namespace

void registerCpus() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
}

bool isCpu(std::string_view name) {
  return subtarget("generic", "")->isCPUStringValid(StringRef(name.data(), name.size()));
}

std::string unknownFeature(std::string_view features) {
  auto generic = subtarget("generic", "");
  llvm::SmallVector<StringRef> list;
  StringRef(features).split(list, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef feature : list) {
    const bool isSigned = feature.starts_with("+") || feature.starts_with("-");
    if (!isSigned || llvm::none_of(generic->getAllProcessorFeatures(),
                                   [&](const llvm::SubtargetFeatureKV& known) {
                                     return feature.drop_front() == known.Key;
                                   }))
      return feature.str();
  }
  return {};
}

Result<TargetInfo> resolveCpu(std::string_view arch) {
  TargetInfo target;
  if (arch != "native") {
    target.cpu = arch;
    if (!isCpu(arch))
      return Error::usage("--arch={}: no such CPU: use native, x86-64-v2, x86-64-v3, x86-64-v4 or "
                          "LLVM's name of one",
                          arch);
    target.machine = machineOf(classOf(target, makerOf(arch)));
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
  target.machine = machineOf(classOf(target, hostMaker()), hostCaches());
  return target;
}

CpuFeatures::CpuFeatures(const TargetInfo& target)
    : subtarget_(subtarget(target.cpu, target.features)) {}

CpuFeatures::~CpuFeatures() = default;

bool CpuFeatures::has(std::string_view feature) const {
  return subtarget_->checkFeatures("+" + std::string(feature));
}

std::vector<std::string> CpuFeatures::required() const {
  std::vector<std::string> features;
  for (std::string_view feature : instructionSets)
    if (has(feature))
      features.emplace_back(feature);
  return features;
}

} // namespace titan::codegen
