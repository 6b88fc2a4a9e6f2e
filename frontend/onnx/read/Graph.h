// A model in memory: nodes in topological order over values, without local functions, Constant
// nodes and dead nodes. Still ONNX (op types, opset semantics), but checked: every name resolves,
// every output is produced once.
#pragma once

#include "frontend/onnx/read/Notes.h"
#include "frontend/onnx/read/Signature.h"
#include "frontend/onnx/read/Tensor.h"

#include <map>
#include <string>
#include <vector>

namespace titan::frontend {

/// A dimension as declared: a number, a symbol, or unknown (neither).
struct Dim {
  std::optional<int64_t> extent;
  std::string symbol;
  bool operator==(const Dim&) const = default;
};

/// A graph input or output with its declared type.
struct Port {
  std::string name;
  DType dtype = DType::F32;
  bool typed = false; ///< an element type was declared
  std::optional<std::vector<Dim>> dims;
};

/// How sure the module of a legacy scope is: containers that are not called have no scope, so that
/// a module in one looks like a child of the root.
enum class ScopePlace {
  Told,    ///< by metadata, or by tensors of this module or of modules in it
  Likely,  ///< as the scope says: no tensor is against it
  Guessed, ///< a child of the root, in a graph that hides containers
  Unknown, ///< in a container that is not shown
};

struct Node {
  std::string name; ///< may be empty
  std::string domain, opType;
  int64_t opset = 0;
  std::vector<std::string> inputs, outputs; ///< empty: an optional operand that is absent
  std::vector<::onnx::AttributeProto> attributes;
  std::map<std::string, std::string> metadata;
  std::optional<std::string> module; ///< the source module, where it was found out (resolveScopes)
  ScopePlace place = ScopePlace::Told;

  const ::onnx::AttributeProto* find(std::string_view attribute) const;
  int64_t integer(std::string_view attribute, int64_t otherwise) const;
  double real(std::string_view attribute, double otherwise) const; ///< `asWritten`
  std::string text(std::string_view attribute, std::string_view otherwise) const;
  std::optional<std::vector<int64_t>> integers(std::string_view attribute) const;
  bool hasInput(size_t index) const { return index < inputs.size() && !inputs[index].empty(); }
  /// "node 'fc1' (Gemm)": for messages.
  std::string shown() const;
};

struct Graph {
  std::string source;    ///< the model file as the user gave it
  std::string directory; ///< where it lies
  std::string producer;  ///< "pytorch 2.9.0"
  std::vector<Node> nodes;
  std::vector<Port> inputs; ///< without those that are initializers
  std::vector<Port> outputs;
  std::map<std::string, Tensor> initializers; ///< by value name; Constant nodes included
  std::vector<std::string> initializerOrder;  ///< the file's order
  Notes notes;                                ///< what the user should know
  Signature signature; ///< of the exported module, where the exporter wrote one

  bool fromPyTorch() const { return producer.starts_with("pytorch"); }
  bool fromTensorFlow() const { return producer.starts_with("tf2onnx"); }
};

struct GraphOptions {
  std::string weightsDirectory; ///< where external data lies; empty: beside the model
};

/// The graph that `bytes` hold, as the exporter wrote it. Errors name the file, the node and the
/// numbers. `source` names the bytes in errors and in file spans, external data lies in
/// `directory`.
Result<Graph> buildGraph(std::string_view bytes, const std::string& source,
                         const std::string& directory, const GraphOptions& options = {});

/// A Constant node's value as a TensorProto; nothing for strings and sparse tensors.
std::optional<::onnx::TensorProto> constantValue(const Node& node);

/// The opsets of the ONNX domain that are understood.
inline constexpr int64_t kOldestOpset = 7, kNewestOpset = 26;

} // namespace titan::frontend
