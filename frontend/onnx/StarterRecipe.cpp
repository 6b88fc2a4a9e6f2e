#include "frontend/onnx/StarterRecipe.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace titan::frontend {

static std::string shown(const Port& port) {
  std::string dims;
  for (const Dim& dim : port.dims.value_or(std::vector<Dim>()))
    dims += (dims.empty() ? "" : ", ") + (dim.extent
                                              ? std::to_string(*dim.extent)
                                              : printable(dim.symbol.empty() ? "?" : dim.symbol));
  return fmt::format("'{}' {} [{}]", printable(port.name), port.typed ? name(port.dtype) : "?",
                     dims);
}

/// The loss that an output of this shape suggests: scores of classes, one value, or a loss already.
static std::string lossFor(const Port& output) {
  if (!output.dims)
    return "cross_entropy";
  if (output.dims->empty())
    return "output";
  return output.dims->size() >= 2 && output.dims->back().extent == 1 ? "mse" : "cross_entropy";
}

Result<std::string> starterRecipe(const std::string& path, const ImportOptions& options) {
  Graph graph = TITAN_TRY(readGraph(path, {options.weightsDirectory}));
  Recipe recipe;
  NameOverrides overrides = TITAN_TRY(nameOverrides(recipe, options));
  NameTable names = TITAN_TRY(nameTensors(graph, overrides));

  constexpr int64_t kGuess = 128;
  std::string header = fmt::format("# A starter recipe for {}.\n#\n",
                                   printable(std::filesystem::path(path).filename().string()));
  std::set<std::string> guessed;
  for (const Port& input : graph.inputs) {
    header += fmt::format("# input  {}\n", shown(input));
    if (!input.dims)
      continue;
    for (size_t d = 1; d < input.dims->size(); ++d)
      if (const std::string& symbol = (*input.dims)[d].symbol; !symbol.empty())
        guessed.insert(symbol);
    // The batch of an export with fixed shapes is the one that certainly works.
    if (!input.dims->empty() && input.dims->front().extent.value_or(0) > 1 &&
        &input == &graph.inputs.front())
      recipe.batch.micro = recipe.batch.global = *input.dims->front().extent;
  }
  for (const Port& output : graph.outputs)
    header += fmt::format("# output {}\n", shown(output));
  header += "#\n";
  for (const std::string& symbol : guessed) {
    recipe.model.dims[symbol] = kGuess;
    header += fmt::format("# model.dims: {} = {} is a guess\n", printable(symbol), kGuess);
  }
  recipe.loss.kind = lossFor(graph.outputs.front());
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(),
                  [](const Node& node) { return node.opType == "Dropout"; })) {
    recipe.model.mode = "train";
    header += "# model.mode: the model has dropout\n";
  }
  for (const auto& [name, tensor] : graph.initializers)
    if (!tensor.missing.empty() && recipe.model.init != "fresh") {
      recipe.model.init = "fresh";
      header += fmt::format("# model.init: {}\n", printable(tensor.missing));
    }
  header += "#\n# parameters, for frozen, no_decay, groups and init rules:\n";
  for (const NamedTensor& tensor : names.tensors)
    if (tensor.kind == TensorKind::Parameter && tensor.isState())
      header += fmt::format(
          "#   {} {}\n", printable(tensor.name),
          toString(tensor.sourceShape(graph.initializers.at(tensor.initializer).shape)));
  return header + "\n" + toToml(recipe);
}

} // namespace titan::frontend
