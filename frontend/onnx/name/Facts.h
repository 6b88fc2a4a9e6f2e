// What a graph tells of its tensors before any of them is named: who reads them, from which module,
// and what the exporter's metadata calls things. Found once; no rule changes it.
#pragma once

#include "frontend/onnx/name/Dataflow.h"
#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/name/RecurrentReads.h"

#include <set>

namespace titan::frontend {

class Facts {
public:
  explicit Facts(const Graph& graph);

  const Graph& graph;
  const bool isConverted; ///< Exporter.h
  const Dataflow dataflow;
  const RecurrentReads recurrentReads;

  const Signature& signature() const { return graph.signature; }
  const Tensor& file(const NamedTensor& tensor) const {
    return graph.initializers.at(tensor.initializer);
  }
  /// What the exporter called it, before equal tensors got names of their own.
  const std::string& nameInFile(const NamedTensor& tensor) const;

  const TensorUses& usesOf(const NamedTensor& tensor) const { return usesOf(tensor.initializer); }
  const TensorUses& usesOf(const std::string& initializer) const { return uses_.at(initializer); }
  const Node& nodeOf(const Use& use) const { return graph.nodes[use.node]; }
  const Scope& scopeOf(const Use& use) const { return scopes_[use.node]; }
  const std::vector<Scope>& scopes() const { return scopes_; } ///< by node
  /// The module of the first use, which there is.
  const std::string& firstModule(const NamedTensor& tensor) const;
  /// Is it of floats, and does a gradient reach it?
  bool isDifferentiable(const NamedTensor& tensor) const;
  /// Nothing: no node computes it.
  const Node* producerOf(const std::string& value) const;

  /// Not a name of the source: an exporter's, or the name of a value that its optimizer folded
  /// (torch.export then names no parameter like it).
  bool isMadeUp(const std::string& initializer) const;
  /// Was it separated from others of its values? Which of them has the name, nothing tells.
  bool hasCopies(const std::string& initializer) const;

  /// The TorchScript exporter says nothing of parameters: neither a signature nor metadata of
  /// nodes.
  bool isLegacy() const;
  /// Did the TorchScript exporter fold it of what has a parameter or a buffer among it?
  bool isLegacyFold(const NamedTensor& tensor) const;

  /// 'p': parameter, 'b': buffer, 'c': constant; by mangled name.
  const std::map<std::string, char>& fxKinds() const { return fxKinds_; }
  bool hasFxValues() const { return !fxValues_.empty(); }
  bool isFxValue(const std::string& name) const { return fxValues_.contains(name); }
  /// Has the file the value `name`, an input, an initializer or a result?
  bool isPresent(const std::string& name) const;
  /// Is the initializer, or the one that it was merged into, among the values?
  bool isAmong(const std::vector<FxOperand>& values, const NamedTensor& tensor) const;
  /// The initializer that has kept a name which is mangled so; null: there is none.
  const std::string* byMangled(const std::string& name) const;
  /// "enc_0_weight" to "enc.0.weight": the name of the signature, else the longest module path that
  /// it starts with, `module` or another one, then the attribute.
  std::string demangled(const std::string& text, const std::string& module) const;

private:
  std::map<std::string, TensorUses> uses_;
  std::vector<Scope> scopes_;
  std::set<std::string> modules_;
  std::map<std::string, char> fxKinds_;
  std::set<std::string> fxValues_;               ///< values that fx nodes read
  std::map<std::string, std::string> byMangled_; ///< initializers that kept their names
};

} // namespace titan::frontend
