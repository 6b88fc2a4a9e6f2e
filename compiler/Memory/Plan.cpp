#include "compiler/Memory/Plan.h"

#include "compiler/Memory/Packing.h"
#include "compiler/Support/LocalType.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/TargetInfo.h"

using namespace mlir;

namespace titan::memory {

std::optional<std::pair<BindingRole, StringRef>> bindingOf(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  std::pair<BindingRole, StringRef> roles[] = {{BindingRole::Input, ir::tag::input},
                                               {BindingRole::Control, ir::tag::control},
                                               {BindingRole::Metric, ir::tag::metric},
                                               {BindingRole::Output, ir::tag::output}};
  DictionaryAttr tags = function.getArgAttrDict(argument.getArgNumber());
  for (auto [role, tag] : roles)
    if (auto name = tags ? tags.getAs<StringAttr>(tag) : StringAttr())
      return std::pair(role, name.getValue());
  return std::nullopt;
}

FlatSymbolRefAttr stateOf(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), ir::tag::state);
}

FailureOr<int64_t> offsetOf(Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto offset = function ? function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                                    kernel::offsetTag)
                           : IntegerAttr();
    if (offset)
      return offset.getInt();
    return emitError(root.getLoc(), "argument ")
           << argument.getArgNumber() << " has no '" << kernel::offsetTag << "'";
  }
  if (auto buffer = root.getDefiningOp<kernel::BufferOp>())
    if (static_cast<int64_t>(buffer.getOffset()) >= 0)
      return static_cast<int64_t>(buffer.getOffset());
  if (auto constant = root.getDefiningOp<kernel::ConstantOp>())
    if (constant.getOffset())
      return static_cast<int64_t>(*constant.getOffset());
  return emitError(root.getLoc(), "buffer has no offset in the arena: run the stage 'plan' first");
}

namespace {

FailureOr<FunctionPlan> readFunction(func::FuncOp function, int64_t alignment) {
  FunctionPlan plan;
  plan.function = function;
  plan.commands = listCommands(function);
  for (BlockArgument argument : function.getArguments()) {
    auto binding = bindingOf(argument);
    if (!binding)
      continue;
    FailureOr<int64_t> offset = offsetOf(argument);
    if (failed(offset))
      return failure();
    plan.bindings.push_back({argument, binding->first, binding->second, *offset,
                             bytesOf(cast<ShapedType>(argument.getType()))});
  }
  std::vector<Interval> intervals;
  for (auto [buffer, live] : computeLiveRanges(function)) {
    kernel::BufferOp op = buffer;
    FailureOr<int64_t> offset = offsetOf(op.getResult());
    if (failed(offset))
      return failure();
    int64_t bytes = bytesOf(op.getType());
    plan.temporaries.push_back({op, *offset, bytes, live});
    intervals.push_back({bytes, live.first, live.last});
  }
  plan.maxLiveBytes = maxLive(intervals, alignment);
  return plan;
}

} // namespace

FailureOr<ModulePlan> readPlan(ModuleOp module) {
  ModulePlan plan;
  auto figures = module->getAttrOfType<DictionaryAttr>(arenaTag);
  if (!figures)
    return module.emitError("has no '") << arenaTag << "': run the stage 'plan' first";
  FailureOr<MachineModel> machine = getMachine(module);
  if (failed(machine))
    return failure();
  plan.alignment = machine->arenaAlignment;
  auto figure = [&](StringRef name) {
    auto value = figures.getAs<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  plan.arenaBytes = figure("bytes");
  plan.stateBytes = figure("states");
  plan.constantBytes = figure("constants");
  plan.bindingBytes = figure("bindings");
  plan.temporaryBytes = figure("temporaries");
  plan.stagingOffset = figure("staging_offset");
  plan.stagingBytes = figure("staging");

  FailureOr<Recipe> recipe = getRecipe(module);
  FailureOr<bool> averagesOnHost = keepsAveragesOnHost(module);
  if (failed(recipe) || failed(averagesOnHost))
    return failure();
  for (ir::StateOp state : module.getOps<ir::StateOp>()) {
    auto offset = state->getAttrOfType<IntegerAttr>(kernel::offsetTag);
    if (!offset)
      return state.emitOpError("has no '") << kernel::offsetTag << "'";
    FailureOr<RankedTensorType> local = localTypeOf(state, recipe->mesh.axes);
    if (failed(local))
      return failure();
    const bool isOnHost = *averagesOnHost && state.getKind() == ir::StateKind::Ema;
    const int64_t bytes = bytesOf(*local);
    plan.states.push_back({state, offset.getInt(), bytes, isOnHost});
    if (isOnHost)
      plan.hostBytes += static_cast<int64_t>(llvm::alignTo(bytes, plan.alignment));
  }
  llvm::DenseSet<Attribute> seen;
  auto constants = module.walk([&](kernel::ConstantOp constant) -> WalkResult {
    FailureOr<int64_t> offset = offsetOf(constant.getResult());
    if (failed(offset))
      return WalkResult::interrupt();
    if (seen.insert(constant.getValueAttr()).second)
      plan.constants.push_back(
          {constant.getValue(), *offset, bytesOf(cast<ShapedType>(constant.getType()))});
    return WalkResult::advance();
  });
  if (constants.wasInterrupted())
    return failure();
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    FailureOr<FunctionPlan> read = readFunction(function, plan.alignment);
    if (failed(read))
      return failure();
    plan.functions.push_back(*read);
  }
  return plan;
}

} // namespace titan::memory
