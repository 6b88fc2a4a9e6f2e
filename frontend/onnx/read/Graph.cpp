#include "frontend/onnx/read/Graph.h"

#include "frontend/Decimal.h"
#include "frontend/onnx/read/ExternalData.h"
#include "frontend/onnx/read/Inline.h"
#include "frontend/onnx/read/Reader.h"
#include "frontend/onnx/read/SharedNames.h"
#include "frontend/onnx/read/WireScan.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <queue>
#include <set>

namespace titan::frontend {

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const ::onnx::AttributeProto* Node::find(std::string_view attribute) const {
  for (const ::onnx::AttributeProto& candidate : attributes)
    if (candidate.name() == attribute)
      return &candidate;
  return nullptr;
}

int64_t Node::integer(std::string_view attribute, int64_t otherwise) const {
  const ::onnx::AttributeProto* found = find(attribute);
  return found && found->has_i() ? found->i() : otherwise;
}

double Node::real(std::string_view attribute, double otherwise) const {
  const ::onnx::AttributeProto* found = find(attribute);
  return found && found->has_f() ? asWritten(found->f()) : otherwise;
}

std::string Node::text(std::string_view attribute, std::string_view otherwise) const {
  const ::onnx::AttributeProto* found = find(attribute);
  return found && found->has_s() ? found->s() : std::string(otherwise);
}

std::optional<std::vector<int64_t>> Node::integers(std::string_view attribute) const {
  const ::onnx::AttributeProto* found = find(attribute);
  if (!found || found->ints_size() == 0)
    return std::nullopt;
  return std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

std::string Node::shown() const {
  std::string type = domain.empty() ? opType : domain + "." + opType;
  std::string label = !name.empty() ? name : outputs.empty() ? std::string() : outputs.front();
  return fmt::format("node '{}' ({})", printable(label), printable(type));
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

static constexpr NoteCause kUnused = {"initializer {} is not used and left out",
                                      "{} initializers are not used and left out: {}"};

std::optional<::onnx::TensorProto> constantValue(const Node& node) {
  ::onnx::TensorProto tensor;
  for (const ::onnx::AttributeProto& attribute : node.attributes) {
    if (attribute.name() == "value" && attribute.has_t())
      return attribute.t();
    if (attribute.name() == "value_float" || attribute.name() == "value_floats") {
      tensor.set_data_type(::onnx::TensorProto::FLOAT);
      if (attribute.name() == "value_float")
        tensor.add_float_data(attribute.f());
      else
        *tensor.mutable_float_data() = attribute.floats();
    } else if (attribute.name() == "value_int" || attribute.name() == "value_ints") {
      tensor.set_data_type(::onnx::TensorProto::INT64);
      if (attribute.name() == "value_int")
        tensor.add_int64_data(attribute.i());
      else
        *tensor.mutable_int64_data() = attribute.ints();
    } else {
      continue;
    }
    if (attribute.name().back() == 's')
      tensor.add_dims(attribute.floats_size() + attribute.ints_size());
    return tensor;
  }
  return std::nullopt;
}

namespace {

Result<Port> portOf(const ::onnx::ValueInfoProto& info) {
  Port port;
  port.name = info.name();
  if (port.name.empty())
    return Error::badInput("a graph input or output has no name");
  if (!isText(port.name))
    return Error::badInput("'{}': the name of an input or output is not UTF-8 text",
                           printable(port.name));
  if (!info.has_type())
    return port;
  if (!info.type().has_tensor_type())
    return Error::badInput("'{}' is not a tensor: sequences, maps and optionals are not supported",
                           printable(port.name));
  const ::onnx::TypeProto_Tensor& type = info.type().tensor_type();
  if (type.elem_type() != 0) {
    std::optional<DType> dtype = elementType(type.elem_type());
    if (!dtype)
      return Error::badInput("'{}': element type {} is not supported", printable(port.name),
                             onnxTypeName(type.elem_type()));
    port.dtype = *dtype;
    port.typed = true;
  }
  if (type.has_shape()) {
    port.dims.emplace();
    for (const ::onnx::TensorShapeProto_Dimension& proto : type.shape().dim()) {
      Dim dim;
      if (proto.has_dim_value())
        dim.extent = proto.dim_value();
      else if (proto.has_dim_param())
        dim.symbol = proto.dim_param();
      if (dim.extent && *dim.extent < 0)
        return Error::badInput("'{}': negative extent {}", printable(port.name), *dim.extent);
      port.dims->push_back(std::move(dim));
    }
  }
  return port;
}

class GraphBuilder {
public:
  GraphBuilder(std::string_view bytes, const std::string& source, const std::string& directory,
               const GraphOptions& options)
      : bytes_(bytes),
        externalData_(options.weightsDirectory.empty() ? directory : options.weightsDirectory) {
    graph_.source = source;
    graph_.directory = directory;
  }

  Result<Graph> run() {
    model_ = TITAN_TRY(parseModel(bytes_));
    graph_.producer = model_.producer_name() + " " + model_.producer_version();
    graph_.signature = Signature::parse(
        metadataOf(model_.graph())["pkg.torch.export.ExportedProgram.graph_signature"]);
    graph_.nodes = TITAN_TRY(inlineFunctions(model_));
    model_.clear_functions();
    collectTensors();
    TITAN_TRY(collectPorts());
    TITAN_TRY(renameSharedResults(
        graph_, [&](const std::string& name) { return sources_.contains(name); }));
    TITAN_TRY(sort());
    dropDeadNodes();
    TITAN_TRY(takeTensors());
    if (model_.training_info_size() > 0)
      graph_.notes.add("the model's training_info is ignored: the recipe says how to train");
    return std::move(graph_);
  }

private:
  struct Source {
    ::onnx::TensorProto proto;
    std::optional<ByteRange> range;
    std::string what;
  };

  void collectTensors() {
    TensorRanges ranges = scanTensors(bytes_);
    ::onnx::GraphProto& proto = *model_.mutable_graph();
    std::map<std::string, ByteRange> constantRanges;
    for (const auto& [where, range] : ranges.attributes) {
      auto [node, attribute] = where;
      if (node < static_cast<size_t>(proto.node_size()) && proto.node(node).output_size() == 1 &&
          proto.node(node).op_type() == "Constant")
        constantRanges[proto.node(node).output(0)] = range;
    }
    proto.clear_node();
    for (int i = 0; i < proto.initializer_size(); ++i) {
      ::onnx::TensorProto& tensor = *proto.mutable_initializer(i);
      std::string name = tensor.name();
      std::optional<ByteRange> range;
      if (static_cast<size_t>(i) < ranges.initializers.size())
        range = ranges.initializers[i];
      std::string what = fmt::format("initializer '{}'", printable(name));
      if (!sources_.try_emplace(name, Source{std::move(tensor), range, what}).second)
        duplicates_.push_back(name);
      graph_.initializerOrder.push_back(name);
    }
    proto.clear_initializer();
    std::vector<Node> rest;
    for (Node& node : graph_.nodes) {
      std::optional<::onnx::TensorProto> value;
      if (node.opType == "Constant" && node.domain.empty() && node.outputs.size() == 1)
        value = constantValue(node);
      if (!value) {
        rest.push_back(std::move(node));
        continue;
      }
      const std::string& name = node.outputs.front();
      value->set_name(name);
      std::optional<ByteRange> range;
      if (auto it = constantRanges.find(name); it != constantRanges.end())
        range = it->second;
      if (!sources_.try_emplace(name, Source{std::move(*value), range, node.shown()}).second)
        duplicates_.push_back(name);
      constants_.insert(name);
      graph_.initializerOrder.push_back(name);
    }
    graph_.nodes = std::move(rest);
  }

  Status collectPorts() {
    std::set<std::string> seen;
    for (const ::onnx::ValueInfoProto& info : model_.graph().input()) {
      Port port = TITAN_TRY(portOf(info));
      if (!seen.insert(port.name).second)
        return Error::badInput("input '{}' is declared twice", printable(port.name));
      // Before IR version 4 every initializer was listed as an input as well.
      if (sources_.contains(port.name) && !constants_.contains(port.name))
        continue;
      graph_.inputs.push_back(std::move(port));
    }
    seen.clear();
    for (const ::onnx::ValueInfoProto& info : model_.graph().output()) {
      Port port = TITAN_TRY(portOf(info));
      if (!seen.insert(port.name).second)
        return Error::badInput("output '{}' is declared twice", printable(port.name));
      graph_.outputs.push_back(std::move(port));
    }
    if (graph_.outputs.empty())
      return Error::badInput("has no outputs");
    return {};
  }

  /// Orders the nodes topologically (the file's order where it is one), and checks that each value
  /// is produced once.
  Status sort() {
    if (sources_.contains(""))
      return Error::badInput("an initializer has no name");
    if (!duplicates_.empty())
      return Error::badInput("'{}' is produced more than once", printable(duplicates_.front()));
    constexpr size_t kNoNode = SIZE_MAX;
    std::map<std::string, size_t> producer;
    for (const auto& [name, source] : sources_)
      producer[name] = kNoNode;
    for (const Port& input : graph_.inputs)
      if (!producer.try_emplace(input.name, kNoNode).second)
        return Error::badInput("'{}' is both an input and a constant", printable(input.name));
    std::vector<Node>& nodes = graph_.nodes;
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const std::string& output : nodes[i].outputs)
        if (!output.empty() && !producer.try_emplace(output, i).second)
          return Error::badInput("{}: '{}' is produced more than once", nodes[i].shown(),
                                 printable(output));
    std::vector<std::vector<size_t>> users(nodes.size());
    std::vector<size_t> waiting(nodes.size(), 0);
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const std::string& input : nodes[i].inputs) {
        if (input.empty())
          continue;
        auto it = producer.find(input);
        if (it == producer.end())
          return Error::badInput("{}: nothing produces its input '{}'", nodes[i].shown(),
                                 printable(input));
        if (it->second == kNoNode)
          continue;
        users[it->second].push_back(i);
        ++waiting[i];
      }
    for (const Port& output : graph_.outputs)
      if (!producer.contains(output.name))
        return Error::badInput("nothing produces output '{}'", printable(output.name));

    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (waiting[i] == 0)
        ready.push(i);
    std::vector<Node> ordered;
    while (!ready.empty()) {
      size_t i = ready.top();
      ready.pop();
      for (size_t user : users[i])
        if (--waiting[user] == 0)
          ready.push(user);
      ordered.push_back(std::move(nodes[i]));
    }
    if (ordered.size() != nodes.size())
      for (size_t i = 0; i < nodes.size(); ++i)
        if (waiting[i] != 0)
          return Error::badInput("{}: the graph has a cycle through it", nodes[i].shown());
    nodes = std::move(ordered);
    return {};
  }

  void dropDeadNodes() {
    for (const Port& output : graph_.outputs)
      live_.insert(output.name);
    std::vector<Node> kept;
    for (auto it = graph_.nodes.rbegin(); it != graph_.nodes.rend(); ++it) {
      if (std::none_of(it->outputs.begin(), it->outputs.end(),
                       [&](const std::string& name) { return live_.contains(name); }))
        continue;
      live_.insert(it->inputs.begin(), it->inputs.end());
      // Exporters name outputs that nobody reads, such as Dropout's mask.
      for (std::string& output : it->outputs)
        if (!live_.contains(output))
          output.clear();
      kept.push_back(std::move(*it));
    }
    std::reverse(kept.begin(), kept.end());
    graph_.nodes = std::move(kept);
  }

  Status takeTensors() {
    std::vector<std::string> order;
    for (const std::string& name : graph_.initializerOrder) {
      if (!live_.contains(name)) {
        if (!constants_.contains(name))
          graph_.notes.add(kUnused, inQuotes(name));
        continue;
      }
      if (!isText(name))
        return Error::badInput("'{}': the name of an initializer is not UTF-8 text",
                               printable(name));
      Source& source = sources_.at(name);
      Tensor tensor = TITAN_TRY(takeTensor(source.proto, source.what));
      tensor.fromConstantNode = constants_.contains(name);
      if (source.proto.data_location() == ::onnx::TensorProto::EXTERNAL)
        TITAN_TRY(externalData_.attach(source.proto, tensor, source.what));
      else if (source.range && sameBytes(*source.range, *tensor.inlineBytes))
        tensor.span = FileSpan{std::filesystem::path(graph_.source).filename().string(),
                               source.range->offset, source.range->bytes};
      graph_.initializers.emplace(name, std::move(tensor));
      order.push_back(name);
    }
    graph_.initializerOrder = std::move(order);
    return {};
  }

  bool sameBytes(const ByteRange& range, const std::string& expected) const {
    return range.bytes == expected.size() &&
           std::memcmp(bytes_.data() + range.offset, expected.data(), range.bytes) == 0;
  }

  std::string_view bytes_;
  ExternalData externalData_;
  ::onnx::ModelProto model_;
  Graph graph_;
  std::map<std::string, Source> sources_;
  std::set<std::string> constants_,
      live_; ///< outputs of Constant nodes; values that reach an output
  std::vector<std::string> duplicates_;
};

} // namespace

Result<Graph> buildGraph(std::string_view bytes, const std::string& source,
                         const std::string& directory, const GraphOptions& options) {
  Result<Graph> graph = GraphBuilder(bytes, source, directory, options).run();
  if (!graph.ok())
    return graph.takeError().withContext(source);
  return graph;
}

} // namespace titan::frontend
