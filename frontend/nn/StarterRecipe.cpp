#include "frontend/nn/StarterRecipe.h"

#include "frontend/nn/Builder.h"
#include "frontend/state/ElementTypes.h"

using namespace mlir;

namespace titan::nn {

/// "'input_ids' I64 [8, 1024]"
static std::string shown(StringRef name, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  std::optional<DType> dtype = frontend::dtypeOf(tensor.getElementType());
  return fmt::format("'{}' {} {}", name.str(), dtype ? titan::name(*dtype) : "?",
                     toString(tensor.getShape()));
}

Result<std::string> starterRecipe(MLIRContext& context, const ModelRequest& request) {
  Recipe recipe;
  recipe.model.init = "fresh";
  request.model->suggest(recipe, request.options);
  auto module = TITAN_TRY(buildModule(context, request.text, recipe, request.builder()));
  auto model = *module->getOps<func::FuncOp>().begin();

  std::string header = fmt::format("# A starter recipe for {}.\n#\n", request.text);
  for (BlockArgument argument : model.getArguments())
    if (auto name = model.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ir::tag::input))
      header += fmt::format("# input  {}\n", shown(name, argument.getType()));
  for (unsigned i = 0; i < model.getNumResults(); ++i)
    header += fmt::format("# output {}\n",
                          shown(model.getResultAttrOfType<StringAttr>(i, ir::tag::output),
                                model.getResultTypes()[i]));
  header += "#\n# parameters, for frozen, no_decay, groups and init rules:\n";
  for (auto state : module->getOps<ir::StateOp>())
    if (state.getKind() == ir::StateKind::Param)
      header +=
          fmt::format("#   {} {}\n", state.getCanonicalName().value_or(state.getSymName()).str(),
                      toString(state.getTensorType().getShape()));
  return header + "\n" + toToml(recipe);
}

} // namespace titan::nn
