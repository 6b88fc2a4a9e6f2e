#include "frontend/onnx/Check.h"

#include "frontend/onnx/convert/Conversion.h"

namespace titan::frontend {

static std::string declaredShape(const Port& port) {
  if (!port.dims)
    return "of unknown shape";
  std::string text = "[";
  for (const Dim& dim : *port.dims) {
    text += text.size() > 1 ? ", " : "";
    text += dim.extent           ? std::to_string(*dim.extent)
            : dim.symbol.empty() ? "?"
                                 : printable(dim.symbol);
  }
  return text + "]";
}

static std::string ports(const char* title, const std::vector<Port>& list) {
  std::string text = fmt::format("{} ({}):\n", title, list.size());
  for (const Port& port : list)
    text += fmt::format("  {:<40} {:<5} {}\n", printable(port.name),
                        port.typed ? titan::name(port.dtype) : "?", declaredShape(port));
  return text;
}

/// Name, type, shape and what the file calls it; of several initializers also their shapes.
static std::string line(const Graph& graph, const NamedTensor& tensor, const std::string& name,
                        const Shape& shape, const std::vector<std::string>& initializers) {
  const Tensor& file = graph.initializers.at(tensor.initializer);
  std::string text =
      fmt::format("  {:<40} {:<5} {}", printable(name), titan::name(file.dtype), toString(shape));
  if (initializers.size() > 1 || initializers.front() != name) {
    std::vector<std::string> quoted;
    for (const std::string& initializer : initializers)
      quoted.push_back(inQuotes(initializer) +
                       (initializers.size() == 1
                            ? ""
                            : " " + toString(graph.initializers.at(initializer).shape)));
    text += fmt::format("  from {}", fmt::join(quoted, ", "));
  }
  if (!tensor.pieces.empty() && initializers.size() == 1)
    text += fmt::format(", stored as {}", toString(file.shape));
  for (const std::string& alias : tensor.aliases)
    text += fmt::format(", tied to '{}'", printable(alias));
  if (tensor.structural)
    text += ", name made up";
  if (tensor.guessed)
    text += ", name guessed";
  if (file.restored)
    text += ", zeros that the exporter left out";
  if (!file.missing.empty())
    text += ", data not there";
  return text + "\n";
}

/// The states, or the constants, of one kind.
static std::string tensors(const Graph& graph, const NameTable& names, TensorKind kind) {
  std::string lines;
  int64_t count = 0, elements = 0;
  auto add = [&](const NamedTensor& tensor, const std::string& name, const Shape& shape,
                 const std::vector<std::string>& initializers) {
    ++count;
    elements += elementCount(shape);
    lines += line(graph, tensor, name, shape, initializers);
  };
  if (kind == TensorKind::Constant) {
    for (const NamedTensor& tensor : names.tensors)
      if (tensor.kind == kind)
        add(tensor, tensor.name, graph.initializers.at(tensor.initializer).shape,
            {tensor.initializer});
  } else {
    for (const NamedState& state : names.states)
      if (names.tensors[state.tensor].kind == kind)
        add(names.tensors[state.tensor], state.name, state.shape, initializersOf(state.sources));
  }
  return fmt::format("{}s ({}, {} elements):\n{}", name(kind), count, elements, lines);
}

Result<CheckReport> checkModel(mlir::MLIRContext& context, const std::string& path,
                               const Recipe& recipe, const ImportOptions& options) {
  Graph graph = TITAN_TRY(readModel(path, recipe, options));
  NameOverrides overrides = TITAN_TRY(nameOverrides(recipe, options));
  NameTable names = TITAN_TRY(nameTensors(graph, overrides));
  CheckReport report;
  report.text = fmt::format("model '{}' ({}), {} nodes\n", graph.source, printable(graph.producer),
                            graph.nodes.size());
  report.text += ports("inputs", graph.inputs);
  report.text += ports("outputs", graph.outputs);
  for (TensorKind kind : {TensorKind::Parameter, TensorKind::Buffer, TensorKind::Constant})
    report.text += tensors(graph, names, kind);
  for (const std::string& note : notesOf(graph, names))
    report.text += "note: " + note + "\n";
  Result<mlir::OwningOpRef<mlir::ModuleOp>> module = importGraph(context, graph, names, recipe);
  report.importable = module.ok();
  if (!module.ok() && module.error().code() != ErrorCode::BadInput)
    return module.takeError();
  report.text += module.ok() ? fmt::format("the model can be imported with batch.micro = {}\n",
                                           recipe.batch.micro)
                             : "error: " + module.error().message() + "\n";
  return report;
}

std::string coverageTable() {
  std::string text = "| op | from opset | restrictions |\n|---|---|---|\n";
  for (const ConverterEntry& entry : converterTable())
    text += fmt::format("| {} | {} | {} |\n", entry.opType,
                        std::max<int64_t>(entry.since, kOldestOpset), entry.notes);
  return text;
}

} // namespace titan::frontend
