#include "compiler/Codegen/Targets.h"

#include "compiler/Codegen/cpu/CpuRoutines.h"
#include "compiler/Codegen/cpu/CpuTarget.h"
#include "compiler/Codegen/cuda/CudaArch.h"
#include "compiler/Codegen/cuda/CudaTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace titan::codegen {
namespace {

std::vector<std::string> ignoredByCpus(const Recipe& recipe) {
  if (recipe.precision.matmul == "f32")
    return {};
  return {fmt::format("precision.matmul = \"{}\" has no effect on cpu: products read f32 whole",
                      recipe.precision.matmul)};
}

std::vector<TargetKind>& kinds() {
  static std::vector<TargetKind> list = {
      {"cpu", resolveCpu, CpuTarget::create, "native", nullptr, ignoredByCpus},
      {"cuda", resolveCards, CudaTarget::create, cuda::defaultArchs, checkRecipeForCards}};
  return list;
}

/// Null: there is none of this name.
const TargetKind* kindNamed(std::string_view name) {
  const auto found =
      llvm::find_if(kinds(), [&](const TargetKind& kind) { return kind.name == name; });
  return found == kinds().end() ? nullptr : &*found;
}

std::string knownKinds() {
  return llvm::join(llvm::map_range(kinds(), [](const TargetKind& kind) { return kind.name; }),
                    ", ");
}

Result<const TargetKind*> kindOfOption(std::string_view name) {
  if (const TargetKind* kind = kindNamed(name))
    return kind;
  return Error::usage("--target={}: this version compiles for {}", name, knownKinds());
}

/// Of a target that is resolved, or that a stage was printed with.
Result<const TargetKind*> kindOfTarget(std::string_view name) {
  if (const TargetKind* kind = kindNamed(name))
    return kind;
  return Error::badInput("'titan.target' is of the kind '{}': this version compiles for {}", name,
                         knownKinds());
}

} // namespace

void registerTargetInterfaces(mlir::DialectRegistry& registry) { registerCpuRoutines(registry); }

void addTargetKind(TargetKind kind) { kinds().push_back(std::move(kind)); }

Result<TargetInfo> resolveTarget(std::string_view kind, std::string_view arch) {
  const TargetKind* found = TITAN_TRY(kindOfOption(kind));
  return found->resolve(arch.empty() ? found->defaultArch : arch);
}

namespace {

std::vector<std::string> partsOf(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    parts.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return parts;
}

} // namespace

Result<std::vector<TargetInfo>> resolveTargets(std::string_view kinds, std::string_view arch) {
  const std::vector<std::string> names = partsOf(kinds);
  if (names.size() < 2)
    return std::vector{TITAN_TRY(resolveTarget(kinds, arch))};
  std::vector<const TargetKind*> found;
  for (const std::string& name : names) {
    found.push_back(TITAN_TRY(kindOfOption(name)));
    if (llvm::count(found, found.back()) > 1)
      return Error::usage("--target={} names {} twice", kinds, name);
  }
  std::vector<std::string> archs(found.size());
  for (const std::string& part : partsOf(arch)) {
    const auto owner =
        llvm::find_if(found, [&](const TargetKind* kind) { return kind->resolve(part).ok(); });
    if (owner == found.end())
      return Error::usage("--arch={}: none of the targets {} knows '{}'", arch, kinds, part);
    std::string& list = archs[static_cast<size_t>(owner - found.begin())];
    list += (list.empty() ? "" : ",") + part;
  }
  std::vector<TargetInfo> targets;
  for (size_t i = 0; i < found.size(); ++i)
    targets.push_back(TITAN_TRY(resolveTarget(found[i]->name, archs[i])));
  return targets;
}

Status checkRecipe(std::string_view name, const Recipe& recipe) {
  const TargetKind* kind = TITAN_TRY(kindOfTarget(name));
  return kind->accepts ? kind->accepts(recipe) : Status();
}

Result<std::vector<std::string>> ignoredKeys(std::string_view name, const Recipe& recipe) {
  const TargetKind* kind = TITAN_TRY(kindOfTarget(name));
  return kind->ignores ? kind->ignores(recipe) : std::vector<std::string>();
}

Result<std::unique_ptr<Target>> createTarget(TargetInfo info, mlir::MLIRContext* context) {
  const TargetKind* kind = TITAN_TRY(kindOfTarget(info.kind));
  return kind->create(std::move(info), context);
}

} // namespace titan::codegen
