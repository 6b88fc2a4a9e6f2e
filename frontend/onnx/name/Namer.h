// Kinds and names of a graph's tensors, from what the exporter left: their own names, the
// signature, the metadata and scopes of the nodes that read them.
#pragma once

#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Names.h"

#include <set>

namespace titan::frontend {

/// Did an exporter or an optimizer make this name up?
bool isAnonymous(std::string_view name);

/// Is it an export of torch.export whose metadata a conversion to an older opset dropped?
bool isConverted(const Graph& graph);
/// Is `name` one that torch.export gives to a value, after its op: "exp", "add_1"?
bool namesFxValue(std::string_view name);

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
  bool classifyAngles(NamedTensor& tensor);
  bool holdsAngles(const Tensor& file) const;
  bool recover(NamedTensor& tensor);
  bool besideParameter(const NamedTensor& tensor) const;
  bool fromScope(NamedTensor& tensor);
  struct Attribute {
    std::string name;
    bool guessed = false; ///< from shapes alone
  };
  Attribute weightAttribute(const NamedTensor& tensor, const Use& use) const;
  size_t productsOf(const std::string& module, const Shape* shape) const;
  bool take(NamedTensor& tensor, const std::string& name, bool transposed);
  void nameStructurally(NamedTensor& tensor);
  Proof proofOf(const NamedTensor& constant) const;
  bool isPerhapsPadded(const NamedTensor& table) const;
  void listSource();

  // Metadata.cpp: what the fx nodes of torch.export say.
  bool fromMetadata(NamedTensor& tensor);
  static std::optional<std::vector<int64_t>> dimsOf(Reading reading, const Shape& shape,
                                                    bool transposed);
  bool isFolded(const NamedTensor& tensor) const;
  bool isPresent(const std::string& value) const;
  bool isRead(const std::vector<FxOperand>& values, const std::string& name) const;
  std::string demangled(const std::string& text, const std::string& module) const;

  // Ties.cpp: one tensor under several names.
  bool isOfLayer(const Use& use) const;
  void tie(NamedTensor& tensor);
  void readAs(NamedTensor& tensor, const std::string& of, bool transposed);
  void settleCopies();
  bool isCopy(NamedTensor& tensor, const std::string& of, bool transposed);

  // LegacyFolds.cpp: what the TorchScript exporter computed from parameters and buffers.
  bool isLegacy() const;
  bool isLegacyFold(const NamedTensor& tensor) const;
  bool isLayer(const std::string& module) const;
  void nameLegacyFold(NamedTensor& tensor);
  void classifyLegacy(NamedTensor& tensor);

  // FoldedReadings.cpp: folded matrices that are readings of a parameter which the file has too.
  void readFolds();
  bool isShownByScope(const NamedTensor& tensor) const;
  bool isOfACopiedLayer(const NamedTensor& tensor, const NamedTensor& original) const;

  // Recurrent.cpp: the operands of LSTM, GRU and RNN, which hold several parameters each.
  bool fromRecurrence(NamedTensor& tensor);

  // Projections.cpp: an attention's projection that the exporter cut in two.
  void findProjections();
  bool readsItself(const std::string& module, const std::string& name) const;
  bool fromProjection(NamedTensor& tensor);

  // Converted.cpp: files of torch.export that lost all metadata.
  bool fromBiasBeside(NamedTensor& tensor);
  bool hasCopies(const std::string& name) const;
  void doubtShared();

  // MergedNodes.cpp: layers that became one.
  bool hasMergedNodes() const;
  bool isOptimized() const;
  void doubtMergedLayers();

  // Folded.cpp: what an optimizing exporter computed.
  void nameFolded(const std::vector<size_t>& unknown);
  Proof proofOfFolded(const NamedTensor& tensor) const;
  bool isNumber(const NamedTensor& tensor) const;
  bool isWhole(const NamedTensor& tensor) const;
  bool readAsMoved(NamedTensor& tensor);
  bool nameComputedOfKept(NamedTensor& tensor);
  bool nameTaken(NamedTensor& tensor);
  bool nameTransposed(NamedTensor& tensor);
  bool isOpenMask(const NamedTensor& tensor) const;
  std::vector<std::string> uniformSourcesOf(const NamedTensor& tensor) const;
  void nameComputed(NamedTensor& tensor);
  void nameAddedPositions(NamedTensor& tensor);
  void namePart(NamedTensor& tensor, std::vector<std::string> of, const NoteCause& cause);
  std::vector<const SourceTensor*> lost(bool parameters) const;
  bool isAddedToEmbedding(const NamedTensor& tensor) const;
  const std::string& firstModule(const NamedTensor& tensor) const;

  const Graph& graph_;
  std::map<std::string, TensorUses> uses_;
  std::vector<Scope> scopes_;              ///< by node
  std::map<std::string, size_t> producer_; ///< node by output
  std::set<std::string> modules_, taken_;
  std::map<std::string, char> fxKinds_; ///< by mangled name
  std::set<std::string> fxValues_;      ///< values that fx nodes read
  std::set<std::string> accounted_;     ///< parameters of which the file has a part, for certain
  bool converted_ = false;              ///< isConverted()
  std::map<std::string, std::string> byMangled_; ///< initializers that kept their names
  /// What findProjections() found, by initializer.
  std::map<std::string, std::pair<StatePiece, Role>> projections_;
  std::map<std::string, std::string> copies_; ///< by copy: what fills its state
  NameTable table_;
};

} // namespace titan::frontend
