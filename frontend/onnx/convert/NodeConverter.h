// The nodes of a graph, one after the other: what follows from constants and shapes is computed,
// and the rest become ops by the converters of their families.
#pragma once

#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/read/Branches.h"
#include "runtime/program/Recipe.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace titan::frontend {

class NodeConverter {
public:
  /// All outlive the object. Ops are created where `builder` stands.
  NodeConverter(const Graph& graph, const NameTable& names, const Recipe& recipe,
                mlir::OpBuilder& builder)
      : graph_(graph), names_(names), recipe_(recipe), builder_(builder) {}

  /// The value of this name: to be set before a node reads it.
  Known& valueOf(const std::string& name) { return values_[name]; }
  /// The names file says which row of `table` is a padding.
  void addPadding(mlir::Value table, const NamedTensor& tensor) { paddings_[table] = {&tensor}; }

  /// What is wrong with the node is kept for check().
  void convert(const Node& node);
  /// BadInput: all nodes that could not be converted; a padding of a table that no node looks up.
  Status check() const;
  std::vector<Known> operandsOf(const Node& node) const;

private:
  /// Exporters write an If where they do not know an extent or a rank that the model has: the
  /// branch that it takes stands in its place.
  Status convertIf(const Node& node);
  Status convertSubgraph(const Subgraph& graph);
  /// Makes `name`, which a graph within `node` gives, a value that is not computed yet.
  Status reserve(const Node& node, const std::string& name);
  /// Its body stands there once for each iteration. Exporters write one where PyTorch has a loop
  /// over bags of indices (EmbeddingBag), or a program in TorchScript.
  Status convertLoop(const Node& node);
  /// What iteration `i` of the body gives. Nothing: a node of it has failed.
  Result<std::optional<std::vector<Known>>> iterate(const Node& node, const Subgraph& body,
                                                    int64_t i, const std::vector<Known>& carried);
  /// `rows`, one of each iteration, along a new first dimension.
  Result<Known> stack(const Node& node, std::vector<Known> rows);
  /// What the names file says of the table goes before what the source said of the node.
  std::optional<int64_t> paddingOf(const Node& node, mlir::Value table);
  /// Evaluates the node where all that it reads is known. Shape and Size read only the shape of a
  /// value, CastLike the type of its second operand.
  Result<bool> tryFold(const Node& node, llvm::ArrayRef<Known> operands);
  mlir::Location locationOf(const Node& node) const;
  void fail(const Node& node, const Error& error);
  Status reportProblems() const;
  Status checkPaddings() const;

  const Graph& graph_;
  const NameTable& names_;
  const Recipe& recipe_;
  mlir::OpBuilder& builder_;
  std::map<std::string, Known> values_;
  std::set<std::string> ofSubgraphs_; ///< values that a graph within a node gives
  size_t unrolled_ = 0;               ///< nodes of iterations
  std::map<std::string, uint64_t> randomOrdinals_;
  struct Padding {
    const NamedTensor* tensor;
    bool isUsed = false;
  };
  llvm::DenseMap<mlir::Value, Padding> paddings_; ///< of the names file, by table
  std::vector<std::string> problems_;
  int64_t folded_ = 0; ///< elements
};

} // namespace titan::frontend
