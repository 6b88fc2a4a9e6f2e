#include "compiler/Codegen/StateTable.h"

#include "compiler/Codegen/CommandTable.h"
#include "compiler/Support/LocalType.h"
#include "compiler/Support/StateNames.h"

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

Shape toShape(ArrayRef<int64_t> values) { return Shape(values.begin(), values.end()); }

/// For a state of shape `state`, which a range without one has too.
Init fileInit(ir::FileInitAttr file, const Shape& state) {
  Init init;
  init.kind = Init::Kind::External;
  for (ir::StoredRangeAttr range : file.getStored())
    init.stored.push_back({range.getPath().str(), static_cast<int64_t>(range.getOffset()),
                           static_cast<int64_t>(range.getBytes()), range.getDigest(),
                           range.getShape().empty() ? state : toShape(range.getShape())});
  return init;
}

std::vector<TensorSource> sourcesOf(ir::StateOp op, const Shape& state) {
  std::vector<TensorSource> sources;
  if (std::optional<ArrayAttr> list = op.getSources())
    for (auto source : list->getAsRange<ir::SourceAttr>())
      sources.push_back({source.getInitializer().str(),
                         shortened({toShape(source.getAt()), toShape(source.getFrom()),
                                    toShape(source.getExtent()), toShape(source.getDims())},
                                   state)});
  return sources;
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
  state.profile = profileOf(source).str();
  state.dtype = *dtype;
  state.shape = shapeOf(type);
  state.local = shapeOf(*local);
  state.placement = std::move(*placement);
  state.bytes = elementCount(state.local) * byteSize(state.dtype);
  state.trainable = source.getTrainable();
  if (std::optional<ArrayAttr> aliases = source.getAliases())
    for (auto alias : aliases->getAsRange<StringAttr>())
      state.aliases.push_back(alias.getValue().str());
  state.sources = sourcesOf(source, state.shape);
  // The op's verifier admits these two.
  if (auto rule = dyn_cast<ir::RuleInitAttr>(source.getInit()))
    state.init = ruleInit(rule);
  else
    state.init = fileInit(cast<ir::FileInitAttr>(source.getInit()), state.shape);
  return state;
}

} // namespace titan::codegen
