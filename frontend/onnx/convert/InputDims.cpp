#include "frontend/onnx/convert/InputDims.h"

#include <set>

namespace titan::frontend {
namespace {

/// Dimension `d` of an input, behind the first, has a symbol that the recipe does not bind. To bind
/// it is of no use where it counts samples, as in the states [layers, batch, width] of a recurrent
/// layer.
Error unbound(const Graph& graph, const Port& port, size_t d) {
  const std::string& symbol = (*port.dims)[d].symbol;
  const std::string where =
      fmt::format("input '{}': dimension {} is '{}'", printable(port.name), d, printable(symbol));
  bool isBatchKnown = false;
  for (const Port& other : graph.inputs) {
    if (!other.dims || other.dims->empty() || other.dims->front().extent)
      continue;
    isBatchKnown = true;
    if (&other != &port && !symbol.empty() && other.dims->front().symbol == symbol)
      return Error::badInput("{}, the samples of input '{}': they have to be dimension 0 of every "
                             "input, so transpose this one in the model",
                             where, printable(other.name));
  }
  return Error::badInput("{}: bind it with model.dims = {{ {} = ... }}{}", where,
                         symbol.empty() ? "name" : printable(symbol),
                         isBatchKnown ? ""
                                      : "; samples have to be dimension 0 of every input, so if it "
                                        "counts them, transpose the input in the model");
}

} // namespace

Result<BoundInputs> bindInputs(const Graph& graph, const Recipe& recipe) {
  const auto& bindings = recipe.model.dims;
  std::set<std::string> used;
  BoundInputs bound;
  for (const Port& port : graph.inputs) {
    std::string shown = printable(port.name);
    if (!port.typed)
      return Error::badInput("input '{}' has no element type", shown);
    if (!port.dims)
      return Error::badInput("input '{}' has no shape: export with one", shown);
    BoundInput input{port.name, port.dtype, {}, false};
    for (size_t d = 0; d < port.dims->size(); ++d) {
      const Dim& dim = (*port.dims)[d];
      if (dim.extent) {
        input.shape.push_back(*dim.extent);
        continue;
      }
      auto binding = bindings.find(dim.symbol);
      if (binding != bindings.end() && !dim.symbol.empty()) {
        used.insert(dim.symbol);
        if (binding->second <= 0)
          return Error::badInput("model.dims: {} = {}: must be positive", printable(dim.symbol),
                                 binding->second);
        input.shape.push_back(binding->second);
        continue;
      }
      if (d != 0)
        return unbound(graph, port, d);
      // The legacy exporter gives the batch of every input a symbol of its own; an expression of
      // another symbol is no batch.
      if (dim.symbol.find_first_of(" +-*/()") != std::string::npos)
        return Error::badInput("input '{}': leading dimension '{}' is an expression: bind it with "
                               "model.dims",
                               shown, printable(dim.symbol));
      input.batched = true;
      input.shape.push_back(recipe.batch.micro);
    }
    TITAN_TRY(checkedElementCount(input.shape, fmt::format("input '{}'", shown)));
    for (int64_t extent : input.shape)
      if (extent == 0)
        return Error::badInput("input '{}' of shape {} is empty", shown, toString(input.shape));
    bound.inputs.push_back(std::move(input));
  }
  for (const auto& [symbol, value] : bindings)
    if (!used.contains(symbol)) {
      std::string known;
      for (const Port& port : graph.inputs)
        if (port.dims)
          for (const Dim& dim : *port.dims)
            if (!dim.symbol.empty())
              known += (known.empty() ? "" : ", ") + printable(dim.symbol);
      return Error::badInput("model.dims: no input has a dimension '{}'; there are: {}",
                             printable(symbol), known.empty() ? "none" : known);
    }
  bool symbolic = false;
  for (const BoundInput& input : bound.inputs)
    symbolic |= input.batched;
  if (symbolic)
    return bound;
  // All leading extents are numbers: the first input's is the batch, and every input that has it is
  // batched.
  for (size_t i = 0; i < bound.inputs.size(); ++i) {
    BoundInput& input = bound.inputs[i];
    if (input.shape.empty())
      continue;
    if (bound.bakedBatch == 0) {
      bound.bakedBatch = input.shape.front();
      const Dim& leading = graph.inputs[i].dims->front();
      if (!leading.extent && bound.bakedBatch != recipe.batch.micro)
        return Error::badInput(
            "model.dims: {} = {} is the batch of input '{}', which batch.micro = "
            "{} binds: leave {} out, or set batch.micro = {}",
            printable(leading.symbol), bound.bakedBatch, printable(input.name), recipe.batch.micro,
            printable(leading.symbol), bound.bakedBatch);
    }
    input.batched = input.shape.front() == bound.bakedBatch;
  }
  if (bound.bakedBatch == recipe.batch.micro)
    bound.bakedBatch = 0;
  return bound;
}

} // namespace titan::frontend
