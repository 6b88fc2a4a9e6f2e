#include "frontend/onnx/StarterRecipe.h"
#include "frontend/onnx/ReadGraph.h"

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

static bool isInteger(DType dtype) {
  return dtype == DType::I64 || dtype == DType::I32 || dtype == DType::I16 || dtype == DType::I8 ||
         dtype == DType::U32 || dtype == DType::U16 || dtype == DType::U8;
}

/// Tokens in, scores of the next token at every position out.
static bool isLanguageModel(const Graph& graph) {
  const Port& input = graph.inputs.front();
  const Port& output = graph.outputs.front();
  return input.typed && isInteger(input.dtype) && input.dims && input.dims->size() == 2 &&
         output.dims && output.dims->size() == 3;
}

/// The vocabulary: the last extent of the scores, else the rows of the first embedding; 0: unknown.
static int64_t vocabularyOf(const Graph& graph, const NameTable& names) {
  if (std::optional<int64_t> classes = graph.outputs.front().dims->back().extent)
    return *classes;
  for (const NamedTensor& tensor : names.tensors)
    if (tensor.role == Role::Embedding)
      return graph.initializers.at(tensor.initializer).shape.front();
  return 0;
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
  if (!graph.inputs.empty() && isLanguageModel(graph)) {
    int64_t vocabulary = vocabularyOf(graph, names);
    recipe.data.train = {vocabulary == 256 ? "train.txt" : "train.bin"};
    header +=
        fmt::format("# data.train: a language model with a vocabulary of {}: token files, .bin "
                    "of {} or .txt read as bytes\n",
                    vocabulary, vocabulary > 65536 ? "uint32" : "uint16");
  }
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
  for (const NamedState& state : names.states)
    if (names.tensors[state.tensor].kind == TensorKind::Parameter)
      header += fmt::format("#   {} {}\n", printable(state.name), toString(state.shape));
  return header + "\n" + toToml(recipe);
}

} // namespace titan::frontend
