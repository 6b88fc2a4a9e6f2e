#include "compiler/Support/TargetInfo.h"

#include "compiler/Support/RecipeAttribute.h"
#include "dialects/Titan/Titan.h"
#include "runtime/program/HostStates.h"

using namespace mlir;

namespace titan {
namespace {

using Field = std::pair<StringRef, std::string TargetInfo::*>;

/// The entries that are strings.
SmallVector<Field> fieldsOf(bool isCard) {
  if (isCard)
    return {{"kind", &TargetInfo::kind}, {"archs", &TargetInfo::archs}};
  return {
      {"kind", &TargetInfo::kind}, {"cpu", &TargetInfo::cpu}, {"features", &TargetInfo::features}};
}

} // namespace

FailureOr<TargetInfo> getTarget(ModuleOp module) {
  TargetInfo target;
  Attribute attribute = module->getAttr(ir::tag::target);
  if (!attribute)
    return target;
  auto dictionary = dyn_cast<DictionaryAttr>(attribute);
  const bool isCard = dictionary && dictionary.contains("archs");
  const SmallVector<Field> fields = fieldsOf(isCard);
  if (isCard)
    target.cpu.clear();
  for (auto [name, field] : fields) {
    auto value = dictionary ? dictionary.getAs<StringAttr>(name) : StringAttr();
    if (!value)
      return module.emitError("'")
             << ir::tag::target << "' is not {kind, " << (isCard ? "archs" : "cpu, features")
             << ", machine} with '" << name << "' a string";
    target.*field = value.getValue();
  }
  for (NamedAttribute entry : dictionary)
    if (entry.getName() != "machine" &&
        llvm::none_of(fields, [&](const Field& field) { return entry.getName() == field.first; }))
      return module.emitError("'")
             << ir::tag::target << "' has an unknown entry '" << entry.getName().getValue() << "'";
  Attribute machine = dictionary.get("machine");
  if (!machine)
    return target;
  auto numbers = dyn_cast<DictionaryAttr>(machine);
  if (!numbers)
    return module.emitError("the machine model of '")
           << ir::tag::target << "' is " << machine << ": a dictionary is needed";
  FailureOr<MachineModel> model = readMachine(numbers, module);
  if (failed(model))
    return failure();
  target.machine = *model;
  return target;
}

void setTarget(ModuleOp module, const TargetInfo& target) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> entries;
  for (auto [name, field] : fieldsOf(!target.archs.empty()))
    entries.push_back(builder.getNamedAttr(name, builder.getStringAttr(target.*field)));
  if (target.machine)
    entries.push_back(
        builder.getNamedAttr("machine", toAttribute(*target.machine, module.getContext())));
  module->setAttr(ir::tag::target, builder.getDictionaryAttr(entries));
}

FailureOr<bool> keepsAveragesOnHost(ModuleOp module) {
  FailureOr<Recipe> recipe = getRecipe(module);
  FailureOr<TargetInfo> target = getTarget(module);
  if (failed(recipe) || failed(target))
    return failure();
  return keepsAveragesOnHost(*recipe, target->kind);
}

FailureOr<MachineModel> getMachine(Operation* op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (!module)
    return MachineModel();
  FailureOr<TargetInfo> target = getTarget(module);
  if (failed(target))
    return failure();
  return target->machine.value_or(MachineModel());
}

} // namespace titan
