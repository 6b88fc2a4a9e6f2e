// Norms and biases that an exporter merged for their equal values and whose nodes say nothing of
// where they come from, as after a conversion to an older opset: each layer gets tensors of its
// own.
#include "frontend/onnx/name/Angles.h"
#include "frontend/onnx/name/Derived.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/LayerCalls.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/name/NormsOfGroups.h"
#include "frontend/onnx/name/SourceModel.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>
#include <utility>

namespace titan::frontend {

static constexpr NoteCause kPerhapsMerged = {
    "{} is read by several layers, and nothing tells whether it was merged from parameters of "
    "equal value: it is separate for each, and the first has the name; export to opset 18 or later "
    "to keep what tells",
    "{} tensors are read by several layers each, and nothing tells whether they were merged from "
    "parameters of equal value: they are separate for each, and the first has the name; export to "
    "opset 18 or later to keep what tells: {}"};

namespace {

/// All reads of one tensor by one layer.
struct Layer {
  std::string tensor;
  Role role = Role::Other;
  std::vector<Read> reads; ///< in graph order
  std::string name;        ///< of its own tensor; empty: not known
};

/// Of a tensor that is read more often each read is a layer: they are compared pair by pair.
constexpr size_t kMostCalls = 1024;

class Separator {
public:
  explicit Separator(Graph& graph)
      : graph_(graph), converted_(isConverted(graph)), gradients_(graph), calls_(graph) {
    for (const NormOfGroups& norm : normsOfGroups(graph)) {
      if (norm.scale)
        ofGroups_[{*norm.scale, norm.scaleOperand}] = Role::NormScale;
      if (norm.shift)
        ofGroups_[{*norm.shift, norm.shiftOperand}] = Role::NormBias;
    }
  }

  void run() {
    for (const std::string& name : graph_.initializerOrder)
      if (isShared(name))
        collect(name);
    if (graph_.signature.known())
      for (const char* leaf : {"weight", "bias", "running_mean", "running_var"})
        nameBySignature(leaf);
    for (const auto& [name, layers] : layers_)
      separate(name);
  }

private:
  /// Does more than one node that says nothing of its module read `name` as a part of a layer?
  bool isShared(const std::string& name) {
    std::vector<Read> reads = layerReads(name);
    if (reads.size() < 2)
      return false;
    for (const Port& output : graph_.outputs)
      if (output.name == name)
        return false;
    return std::ranges::all_of(reads, [&](const Read& read) {
      return !scopeOf(graph_.nodes[read.node]).known && partOf(name, read) != Role::Other;
    });
  }

  /// The reads of `name` that may be layers: running statistics, and what a gradient passes. What
  /// only asks for the shape or the type, or compares, trains nothing.
  std::vector<Read> layerReads(const std::string& name) const {
    std::vector<Read> reads = calls_.readsOf(name);
    std::erase_if(reads, [&](const Read& read) {
      const Node& node = graph_.nodes[read.node];
      return !gradients_.leadThrough(node, read.operand) &&
             roleOf(node, read.operand, /*rank=*/1) != Role::Statistic;
    });
    return reads;
  }

  /// The part of a layer that `read` of `name` is; Other: none that may have been merged.
  Role partOf(const std::string& name, const Read& read) {
    const Tensor& tensor = graph_.initializers.at(name);
    const Node& node = graph_.nodes[read.node];
    Role role = roleOf(node, read.operand, tensor.shape.size());
    bool named = !isAnonymous(name);
    if (tensor.fromConstantNode || tensor.shape.empty() || !isFloating(tensor.dtype))
      return Role::Other;
    if (auto known = ofGroups_.find({read.node, read.operand}); known != ofGroups_.end())
      return mayBeMerged(tensor) ? known->second : Role::Other;
    if (named && converted_ && role != Role::Weight && role != Role::Embedding)
      return !mayBeMerged(tensor) ? Role::Other : role == Role::Other ? Role::NormScale : role;
    // A norm that the exporter took apart. What it computed itself has no name.
    if (role == Role::Other && node.opType == "Mul" && tensor.shape.size() == 1 && named &&
        tensor.shape[0] > 1 && graph_.fromPyTorch())
      role = Role::NormScale;
    if (node.opType == "Sum" || (node.opType == "Add" && (node.inputs.size() != 2 || !named)))
      return Role::Other;
    bool isPart = role == Role::NormScale || role == Role::NormBias || role == Role::Statistic ||
                  (role == Role::Bias && tensor.shape.size() == 1);
    if (!isPart)
      return Role::Other;
    // A bias beside its product is known by the product. What else was drawn or trained is equal
    // only where it is the same.
    return equalByChance(tensor) ||
                   (role == Role::Bias && !calls_.productBeside(read).matrix.empty())
               ? role
               : Role::Other;
  }

  /// torch.export's optimizer merges what has no more than 1024 elements, whatever the values are.
  /// Of what a conversion leaves, nothing tells whether it did.
  bool mayBeMerged(const Tensor& tensor) const {
    constexpr int64_t kLargestMerged = 1024;
    return converted_ && elementCount(tensor.shape) <= kLargestMerged &&
           (isUniform(tensor) || (isDrawn(tensor) && !isAngleTable(tensor)));
  }

  bool equalByChance(const Tensor& tensor) {
    auto [known, fresh] = equalByChance_.try_emplace(tensor.name, false);
    if (fresh)
      known->second = !tensor.missing.empty() || tensor.restored || isUniform(tensor);
    return known->second;
  }

  /// What the recurrent layer that reads `name` calls it; empty: it tells nothing.
  std::string nameInRecurrence(const std::string& name, const Read& read) const {
    std::string own = calls_.nameInRecurrence(read);
    return own == name || !graph_.initializers.contains(own) ? own : std::string();
  }

  void collect(const std::string& name) {
    std::vector<Layer>& layers = layers_[name];
    const std::vector<Read> reads = layerReads(name);
    std::vector<std::pair<ReadPlace, size_t>> known; // of reads, their layers
    for (const Read& read : reads) {
      size_t layer = layers.size();
      if (reads.size() <= kMostCalls) {
        ReadPlace place = calls_.placeOf(read);
        for (const auto& [other, its] : known)
          if (calls_.areOfOneLayer(other, place)) {
            layer = its;
            break;
          }
        known.emplace_back(std::move(place), layer);
      }
      if (layer == layers.size())
        layers.push_back({name, partOf(name, read), {}, nameInRecurrence(name, read)});
      layers[layer].reads.push_back(read);
    }
  }

  /// What the attribute of a layer's part is called.
  static std::string_view leafOfPart(const Layer& layer) {
    return layer.role == Role::NormScale               ? "weight"
           : layer.role != Role::Statistic             ? "bias"
           : layer.reads.front().operand == 3 /*mean*/ ? "running_mean"
                                                       : "running_var";
  }

  /// Names the layers' parts after the signature, where it has as many as the graph: both are in
  /// the order of the modules. Nothing else is left to name where it lists no more than the file.
  void nameBySignature(std::string_view leaf) {
    std::vector<Layer*> unnamed;
    for (auto& [name, layers] : layers_)
      for (Layer& layer : layers)
        if (leafOfPart(layer) == leaf)
          unnamed.push_back(&layer);
    std::sort(unnamed.begin(), unnamed.end(), [](const Layer* a, const Layer* b) {
      return a->reads.front().node < b->reads.front().node;
    });
    std::vector<std::string> names;
    bool lost = false;
    for (const SourceTensor& source : graph_.signature.tensors()) {
      bool inFile = graph_.initializers.contains(source.name);
      if (leafOf(source.name) != leaf || (inFile && !layers_.contains(source.name)))
        continue;
      names.push_back(source.name);
      lost |= !inFile;
    }
    if (!lost) {
      for (Layer* layer : unnamed)
        layer->name = layer->tensor;
      return;
    }
    bool matches = names.size() == unnamed.size();
    for (size_t i = 0; matches && i < names.size(); ++i)
      matches = !layers_.contains(names[i]) || unnamed[i]->tensor == names[i];
    for (size_t i = 0; matches && i < names.size(); ++i)
      unnamed[i]->name = names[i];
  }

  /// Gives each layer a tensor of its own.
  void separate(const std::string& name) {
    std::vector<Layer>& layers = layers_.at(name);
    auto hasTheName = [&](const Layer& layer) { return layer.name == name; };
    if (layers.size() < 2 || std::ranges::all_of(layers, hasTheName))
      return;
    const bool named = std::ranges::none_of(layers, [](const Layer& l) { return l.name.empty(); });
    bool taken = std::ranges::any_of(layers, hasTheName);
    // What asks for the shape or the type alone goes on with the name, or with the first layer.
    if (named && !taken)
      for (const Read& read : calls_.readsOf(name))
        graph_.nodes[read.node].inputs[read.operand] = layers.front().name;
    for (size_t i = 0; i < layers.size(); ++i) {
      const bool nameless = layers[i].name.empty();
      // The first without a name of its own has that of the file.
      if (nameless)
        layers[i].name = std::exchange(taken, true) ? fmt::format("{}#{}", name, i) : name;
      for (const Read& read : layers[i].reads)
        graph_.nodes[read.node].inputs[read.operand] = layers[i].name;
      if (layers[i].name != name)
        addCopy(graph_, name, layers[i].name, nameless);
    }
    if (mayBeMerged(graph_.initializers.at(name)) && isDrawn(graph_.initializers.at(name))) {
      graph_.notes.add(kPerhapsMerged, inQuotes(name));
      return;
    }
    const char* names = !named       ? "and the first of them has the name; export with "
                                       "optimize=False for all names"
                        : converted_ ? "named after the recurrent matrices beside them"
                                     : "named in the order of the export's signature";
    graph_.notes.add(fmt::format(
        "'{}' was merged from parameters of equal value, read by {} layers: they are separate "
        "here, {}",
        printable(name), layers.size(), names));
  }

  Graph& graph_;
  const bool converted_;
  const GradientPaths gradients_;
  const LayerCalls calls_;
  std::map<std::pair<size_t, size_t>, Role> ofGroups_; ///< by node and operand
  std::map<std::string, bool> equalByChance_;          ///< by tensor
  std::map<std::string, std::vector<Layer>> layers_;   ///< by tensor
};

} // namespace

void splitMergedLayers(Graph& graph) { Separator(graph).run(); }

} // namespace titan::frontend
