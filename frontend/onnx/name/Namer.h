// Kinds and names of a graph's tensors, from what the exporter left: their own names, the
// signature, the metadata and scopes of the nodes that read them.
#pragma once

#include "frontend/onnx/name/Names.h"

#include <set>

namespace titan::frontend {

/// Did an exporter or an optimizer make this name up?
bool isAnonymous(std::string_view name);

class Namer {
public:
  explicit Namer(const Graph& graph);
  NameTable run();

private:
  const Tensor& fileTensor(const NamedTensor& tensor) const {
    return graph_.initializers.at(tensor.initializer);
  }
  const TensorUses& usesOf(const NamedTensor& tensor) const { return uses_.at(tensor.initializer); }
  const Signature& signature() const { return graph_.signature; }

  // Namer.cpp: the name that the file has, or that metadata and scopes tell.
  bool isMadeUp(const std::string& name) const;
  void describeUse(NamedTensor& tensor);
  void classify(NamedTensor& tensor);
  bool holdsAngles(const Tensor& file) const;
  bool recover(NamedTensor& tensor);
  bool besideParameter(const NamedTensor& tensor) const;
  bool fromMetadata(NamedTensor& tensor);
  bool fromScope(NamedTensor& tensor);
  struct Attribute {
    std::string name;
    bool guessed = false; ///< from shapes alone
  };
  Attribute weightAttribute(const NamedTensor& tensor, const Use& use) const;
  size_t productsOf(const std::string& module, const Shape* shape) const;
  bool take(NamedTensor& tensor, const std::string& name, bool transposed);
  std::string demangled(const std::string& text, const std::string& module) const;
  void nameStructurally(NamedTensor& tensor);
  Proof proofOf(const NamedTensor& constant) const;
  bool isPerhapsPadded(const NamedTensor& table) const;
  void listSource();

  // Ties.cpp: one tensor under several names.
  void tie(NamedTensor& tensor);
  void readAs(NamedTensor& tensor, const std::string& of, bool transposed);
  void settleCopies();
  bool isCopy(NamedTensor& tensor, const std::string& of, bool transposed);
  void tieEmbeddings();

  // Recurrent.cpp: the operands of LSTM, GRU and RNN, which hold several parameters each.
  bool fromRecurrence(NamedTensor& tensor);

  // Projections.cpp: an attention's projection that the exporter cut in two.
  void findProjections();
  bool fromProjection(NamedTensor& tensor);

  // Folded.cpp: what an optimizing exporter computed from parameters.
  std::vector<const SourceTensor*> lostParameters() const;
  void nameFolded(NamedTensor& tensor);
  bool isAddedToEmbedding(const NamedTensor& tensor) const;

  const Graph& graph_;
  std::map<std::string, TensorUses> uses_;
  std::vector<Scope> scopes_;              ///< by node
  std::map<std::string, size_t> producer_; ///< node by output
  std::set<std::string> modules_, taken_;
  std::map<std::string, char> fxKinds_;          ///< by mangled name
  std::map<std::string, std::string> byMangled_; ///< initializers that kept their names
  /// What findProjections() found, by initializer.
  std::map<std::string, std::pair<StatePiece, Role>> projections_;
  std::map<std::string, std::string> copies_; ///< by copy: what fills its state
  NameTable table_;
};

} // namespace titan::frontend
