#include "frontend/onnx/Check.h"

#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Scopes.h"

#include <nlohmann/json.hpp>

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
static std::string line(const CheckReport& report, const AccountLine& tensor,
                        const std::vector<std::string>& aliases) {
  const auto& files = report.graph.initializers;
  std::string text = fmt::format("  {:<40} {:<5} {}", printable(tensor.name),
                                 titan::name(tensor.dtype), toString(tensor.shape));
  const std::vector<std::string>& initializers = tensor.initializers;
  if (initializers.size() > 1 || initializers.front() != tensor.name) {
    std::vector<std::string> quoted;
    for (const std::string& initializer : initializers)
      quoted.push_back(inQuotes(initializer) + (initializers.size() == 1
                                                    ? ""
                                                    : " " + toString(files.at(initializer).shape)));
    text += fmt::format("  from {}", fmt::join(quoted, ", "));
  }
  const Tensor& file = files.at(initializers.front());
  if (!report.names.find(initializers.front())->pieces.empty() && initializers.size() == 1)
    text += fmt::format(", stored as {}", toString(file.shape));
  for (const std::string& alias : aliases)
    text += fmt::format(", tied to '{}'", printable(alias));
  if (tensor.standing == Standing::Part) {
    std::vector<std::string> of;
    for (const std::string& parameter : tensor.of)
      of.push_back(inQuotes(parameter));
    text += of.empty() ? ", computed from parameters"
                       : fmt::format(", part of {}", fmt::join(of, ", "));
  }
  if (tensor.standing == Standing::MadeUp)
    text += ", name made up";
  if (tensor.standing == Standing::Guessed)
    text += ", name guessed";
  if (tensor.kind == TensorKind::Constant)
    text += fmt::format(", {}", name(tensor.proof));
  if (file.restored)
    text += ", zeros that the exporter left out";
  if (!file.missing.empty())
    text += ", data not there";
  return text + "\n";
}

/// The account's lines of one kind.
static std::string tensors(const CheckReport& report, TensorKind kind) {
  std::map<std::string, std::vector<std::string>> aliases;
  for (const AccountLine& tensor : report.names.account.lines)
    if (tensor.standing == Standing::Alias)
      aliases[tensor.of.front()].push_back(tensor.name);
  std::string lines;
  int64_t count = 0, elements = 0;
  for (const AccountLine& tensor : report.names.account.lines) {
    if (tensor.kind != kind || tensor.initializers.empty())
      continue;
    ++count;
    elements += elementCount(tensor.shape);
    lines += line(report, tensor, aliases[tensor.name]);
  }
  return fmt::format("{}s ({}, {} elements):\n{}", name(kind), count, elements, lines);
}

static std::string absentOnes(const CheckReport& report) {
  std::string lines;
  size_t count = 0;
  for (const AccountLine& tensor : report.names.account.lines)
    if (tensor.standing == Standing::Absent) {
      ++count;
      lines += fmt::format("  {:<40} {}\n", printable(tensor.name), name(tensor.kind));
    }
  return count == 0 ? "" : fmt::format("absent ({}):\n{}", count, lines);
}

namespace {
struct BatchNorm {
  enum Form { Batch, Fixed, Folded } form;
  const Node* node;
};
} // namespace

/// The norms of the batch, in the file's order, also those that are in another node's weights.
static std::vector<BatchNorm> batchNorms(const CheckReport& report) {
  std::vector<BatchNorm> norms;
  for (const Node& node : report.graph.nodes) {
    const bool isNorm = node.domain.empty() && node.opType == "BatchNormalization";
    if (isNorm)
      norms.push_back(
          {report.trainingMode || usesBatchStatistics(node) ? BatchNorm::Batch : BatchNorm::Fixed,
           &node});
    else if (holdsFoldedNorm(node))
      norms.push_back({BatchNorm::Folded, &node});
  }
  return norms;
}

static std::string listOfBatchNorms(const CheckReport& report) {
  static constexpr const char* forms[] = {
      "by the batch", "fixed statistics, as exported (model.mode = \"train\": by the batch)",
      "folded into the weights of this node"};
  std::string lines;
  const std::vector<BatchNorm> norms = batchNorms(report);
  for (const BatchNorm& norm : norms)
    lines += fmt::format("  {:<40} {}\n", printable(pathOf(*norm.node)), forms[norm.form]);
  return norms.empty() ? "" : fmt::format("batch norms ({}):\n{}", norms.size(), lines);
}

/// What the file cannot say of gradients, so that no note names it.
static std::string openGradients(const CheckReport& report) {
  bool readsFx = false, isTraced = false;
  for (const Node& node : report.graph.nodes) {
    const Scope scope = scopeOf(node);
    readsFx |= scope.readsFx();
    isTraced |= scope.isTraced;
  }
  return fmt::format("gradients: the file cannot say what the source freezes{}{}; parameters train "
                     "that model.frozen does not match\n",
                     readsFx ? "" : ", what it detaches",
                     isTraced ? "" : ", what it computes under torch.no_grad()");
}

Result<CheckReport> checkModel(mlir::MLIRContext& context, const std::string& path,
                               const Recipe& recipe, const ImportOptions& options) {
  CheckReport report;
  report.graph = TITAN_TRY(readModel(path, recipe, options));
  NameOverrides overrides = TITAN_TRY(nameOverrides(recipe, options));
  report.names = TITAN_TRY(nameTensors(report.graph, overrides));
  report.notes = notesOf(report.graph, report.names, recipe);
  report.microbatch = recipe.batch.micro;
  report.trainingMode = recipe.model.mode == "train";
  if (options.strictNames)
    if (Status strict = requireExact(report.names.account); !strict.ok()) {
      report.error = strict.error().message();
      return report;
    }
  Result<mlir::OwningOpRef<mlir::ModuleOp>> module =
      importGraph(context, report.graph, report.names, recipe);
  if (!module.ok() && module.error().code() != ErrorCode::BadInput)
    return module.takeError();
  if (module.ok())
    llvm::append_range(report.notes, notesOfModule(**module));
  else
    report.error = module.error().message();
  return report;
}

std::string toText(const CheckReport& report) {
  const Graph& graph = report.graph;
  std::string text = fmt::format("model '{}' ({}), {} nodes\n", graph.source,
                                 printable(graph.producer), graph.nodes.size());
  text += ports("inputs", graph.inputs);
  text += ports("outputs", graph.outputs);
  for (TensorKind kind : {TensorKind::Parameter, TensorKind::Buffer, TensorKind::Constant})
    text += tensors(report, kind);
  text += absentOnes(report);
  text += listOfBatchNorms(report);
  if (graph.fromPyTorch())
    text += openGradients(report);
  for (const std::string& note : report.notes)
    text += "note: " + note + "\n";
  text += report.error.empty()
              ? fmt::format("the model can be imported with batch.micro = {}\n", report.microbatch)
              : "error: " + report.error + "\n";
  return text + report.names.account.summary() + "\n";
}

std::string toJson(const CheckReport& report) {
  using nlohmann::ordered_json;
  const Account& account = report.names.account;
  ordered_json counts = ordered_json::object(), tensors = ordered_json::array();
  const auto numbers = account.counts();
  for (size_t i = 0; i < kStandings; ++i)
    counts[std::string(name(static_cast<Standing>(i)))] = numbers[i];
  for (const AccountLine& line : account.lines) {
    ordered_json tensor = {{"standing", name(line.standing)},
                           {"name", line.name},
                           {"kind", name(line.kind)},
                           {"initializers", line.initializers},
                           {"of", line.of},
                           {"proof", nullptr},
                           {"noted", line.noted}};
    if (line.standing != Standing::Absent) {
      tensor["dtype"] = titan::name(line.dtype);
      tensor["shape"] = line.shape;
    }
    if (line.proof != Proof::None)
      tensor["proof"] = name(line.proof);
    tensors.push_back(std::move(tensor));
  }
  ordered_json batchNormsFound = ordered_json::array();
  for (const BatchNorm& norm : batchNorms(report)) {
    static constexpr const char* forms[] = {"batch", "fixed", "folded"};
    batchNormsFound.push_back(
        {{"node", norm.node->name}, {"module", pathOf(*norm.node)}, {"form", forms[norm.form]}});
  }
  ordered_json json = {{"model", report.graph.source},
                       {"producer", report.graph.producer},
                       {"importable", report.error.empty()},
                       {"error", nullptr},
                       {"notes", report.notes},
                       {"counts", std::move(counts)},
                       {"tensors", std::move(tensors)},
                       {"batch_norms", std::move(batchNormsFound)}};
  if (!report.error.empty())
    json["error"] = report.error;
  return json.dump(2, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace) + "\n";
}

std::string coverageTable() {
  std::string text = "| op | from opset | restrictions |\n|---|---|---|\n";
  for (const ConverterEntry& entry : converterTable())
    text += fmt::format("| {} | {} | {} |\n", entry.opType,
                        std::max<int64_t>(entry.since, kOldestOpset), entry.notes);
  return text;
}

} // namespace titan::frontend
