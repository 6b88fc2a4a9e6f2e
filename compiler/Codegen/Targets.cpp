#include "compiler/Codegen/Targets.h"

#include "compiler/Codegen/cpu/CpuRoutines.h"
#include "compiler/Codegen/cpu/CpuTarget.h"
#include "compiler/Codegen/cuda/CudaArch.h"
#include "compiler/Codegen/cuda/CudaTarget.h"

namespace titan::codegen {
namespace {

std::vector<TargetKind>& kinds() {
  static std::vector<TargetKind> list = {
      {"cpu", resolveCpu, CpuTarget::create},
      {"cuda", resolveCards, CudaTarget::create, cuda::defaultArchs, checkRecipeForCards}};
  return list;
}

Result<const TargetKind*> findKind(std::string_view name) {
  std::string known;
  for (const TargetKind& kind : kinds()) {
    if (kind.name == name)
      return &kind;
    known += (known.empty() ? "" : ", ") + kind.name;
  }
  return Error::usage("--target={}: this version compiles for {}", name, known);
}

} // namespace

void registerTargetInterfaces(mlir::DialectRegistry& registry) { registerCpuRoutines(registry); }

void addTargetKind(TargetKind kind) { kinds().push_back(std::move(kind)); }

Result<TargetInfo> resolveTarget(std::string_view kind, std::string_view arch) {
  const TargetKind* found = TITAN_TRY(findKind(kind));
  return found->resolve(arch.empty() ? found->defaultArch : arch);
}

Status checkRecipe(std::string_view name, const Recipe& recipe) {
  const TargetKind* kind = TITAN_TRY(findKind(name));
  return kind->accepts ? kind->accepts(recipe) : Status();
}

Result<std::unique_ptr<Target>> createTarget(TargetInfo info, mlir::MLIRContext* context) {
  const TargetKind* kind = TITAN_TRY(findKind(info.kind));
  return kind->create(std::move(info), context);
}

} // namespace titan::codegen
