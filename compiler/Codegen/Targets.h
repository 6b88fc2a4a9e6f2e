// The kinds of target that there are.
#pragma once

#include "compiler/Codegen/Target.h"
#include "runtime/program/Recipe.h"

namespace titan::codegen {

/// A kind of target: the name that `--target` takes, and how one is made.
struct TargetKind {
  std::string name;
  /// What `--arch` means. Usage for an unknown one.
  Result<TargetInfo> (*resolve)(std::string_view arch);
  /// BadInput where the description names no machine of this kind.
  Result<std::unique_ptr<Target>> (*create)(TargetInfo info, mlir::MLIRContext* context);
  /// What --arch is when nobody says.
  std::string defaultArch = "native";
  /// BadInput, with the key, for a recipe that no job for this kind can follow; null: any can.
  Status (*accepts)(const Recipe& recipe) = nullptr;
  /// A note for each key that has no effect on this kind; null: all have.
  std::vector<std::string> (*ignores)(const Recipe& recipe) = nullptr;
};

/// Attaches what targets know of dialects' routines, when the dialects are loaded.
void registerTargetInterfaces(mlir::DialectRegistry& registry);

/// Adds a kind, for a program that links further targets; before anything is compiled.
void addTargetKind(TargetKind kind);

/// Usage for an unknown kind, with the known ones, and for an unknown architecture; an empty one is
/// the kind's default.
Result<TargetInfo> resolveTarget(std::string_view kind, std::string_view arch);
/// Of one kind or of several with commas between them, each once. With several, each part of `arch`
/// is the first kind's that knows it. Usage as above, and for a kind that is named twice.
Result<std::vector<TargetInfo>> resolveTargets(std::string_view kinds, std::string_view arch);
/// Can a job for this kind follow the recipe? BadInput for an unknown kind: a printed stage's.
Status checkRecipe(std::string_view kind, const Recipe& recipe);
/// What the user is to know of a recipe that it can follow. BadInput as above.
Result<std::vector<std::string>> ignoredKeys(std::string_view kind, const Recipe& recipe);
Result<std::unique_ptr<Target>> createTarget(TargetInfo info, mlir::MLIRContext* context);

} // namespace titan::codegen
