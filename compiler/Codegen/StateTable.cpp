#include "compiler/Codegen/StateTable.h"

#include "compiler/Codegen/CommandTable.h"
#include "compiler/Support/LocalType.h"

using namespace mlir;

namespace titan::codegen {

namespace {

StateKind toKind(ir::StateKind kind) {
  switch (kind) {
  case ir::StateKind::Param:
    return StateKind::Param;
  case ir::StateKind::Buffer:
    return StateKind::Buffer;
  case ir::StateKind::Slot:
    return StateKind::Slot;
  case ir::StateKind::Ema:
    return StateKind::Ema;
  case ir::StateKind::Counter:
    return StateKind::Counter;
  }
  return StateKind::Param;
}

Init ruleInit(ir::RuleInitAttr rule) {
  Init init;
  init.kind = rule.getDistribution() == "normal"    ? Init::Kind::Normal
              : rule.getDistribution() == "uniform" ? Init::Kind::Uniform
                                                    : Init::Kind::Constant;
  init.a = rule.getA().getValueAsDouble();
  init.b = rule.getB().getValueAsDouble();
  return init;
}

Init fileInit(ir::FileInitAttr file) {
  Init init;
  init.kind = Init::Kind::External;
  init.path = file.getPath();
  init.offset = static_cast<int64_t>(file.getOffset());
  init.digest = file.getDigest();
  init.permutation.assign(file.getPermutation().begin(), file.getPermutation().end());
  return init;
}

} // namespace

FailureOr<State> describeState(ir::StateOp source, std::span<const MeshAxis> mesh) {
  RankedTensorType type = source.getTensorType();
  std::optional<DType> dtype = dtypeOf(type.getElementType());
  if (!dtype)
    return source.emitOpError("has elements of type ")
           << type.getElementType() << ", which no checkpoint holds";
  FailureOr<Placement> placement = placementOf(source, mesh);
  FailureOr<RankedTensorType> local = localTypeOf(source, mesh);
  if (failed(placement) || failed(local))
    return failure();
  State state;
  state.name = source.getName();
  state.kind = toKind(source.getKind());
  state.dtype = *dtype;
  state.shape = shapeOf(type);
  state.local = shapeOf(*local);
  state.placement = std::move(*placement);
  state.bytes = elementCount(state.local) * byteSize(state.dtype);
  state.trainable = source.getTrainable();
  if (std::optional<ArrayAttr> aliases = source.getAliases())
    for (auto alias : aliases->getAsRange<StringAttr>())
      state.aliases.push_back(alias.getValue().str());
  state.sourceName = source.getSourceName().value_or("");
  if (auto layout = source.getSourceLayout())
    state.sourceLayout.assign(layout->begin(), layout->end());
  // The op's verifier admits these two.
  if (auto rule = dyn_cast<ir::RuleInitAttr>(source.getInit()))
    state.init = ruleInit(rule);
  else
    state.init = fileInit(cast<ir::FileInitAttr>(source.getInit()));
  return state;
}

} // namespace titan::codegen
